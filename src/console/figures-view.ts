import type {
  FigurePointJson,
  FiguresJson,
  GetFiguresResponseJson,
  PercentilesJson,
  SubjectFiguresJson,
} from "../../gen/relay/admin/v1/overview_pb.js";
import { barChart, type ChartBar, lineChart } from "./charts.js";
import { applicationLink, type Directory } from "./directory.js";
import { msFrom } from "./frames.js";
import { html, nothing, type TemplateResult } from "./lit-html.js";
import { createLoader } from "./loading.js";
import { createSearchForm, type SearchField } from "./search-form.js";
import { msText, rateText, shareText, visibleText } from "./text.js";
import { answerView, type Column, dataTable, term, type View, type ViewContext } from "./view.js";

type Name = "period" | "publicKey" | "providerName";

const FIELDS: ReadonlyArray<SearchField<Name>> = [
  {
    ...{ name: "period", label: "Time", kind: "choice" },
    choices: [
      ["", "The last hour"],
      ["week", "The last week"],
    ],
  },
  { name: "publicKey", label: "Application", kind: "application" },
  { name: "providerName", label: "Provider", kind: "provider" },
];

/** Refresh interval while the view is shown, in milliseconds. */
const EVERY_MS = 30_000;

/** Number, outcome and duration of the calls of the last hour or week. */
export function createFiguresView(context: ViewContext): View {
  const { api, directory, update } = context;
  const found = createLoader<GetFiguresResponseJson>(update);
  const search = createSearchForm(context, { view: "figures", label: "Figures", fields: FIELDS, button: "Show" });
  let sought = search.enter(new URLSearchParams());
  let timer: ReturnType<typeof setInterval> | undefined;

  function load(): void {
    const { period, publicKey, providerName } = sought;
    const asked = period === "week" ? "PERIOD_WEEK" : "PERIOD_HOUR";
    void found.load(() => api.call("OverviewService/GetFigures", { period: asked, publicKey, providerName }));
  }

  return {
    title: "Figures",
    staysInPlace: true,
    enter(parameters) {
      sought = search.enter(parameters);
      load();
      timer = setInterval(load, EVERY_MS);
    },
    leave() {
      clearInterval(timer);
      found.clear();
    },
    render: () => html`<h1 tabindex="-1">Figures</h1>
      ${search.render()} ${answerView(found, (figures) => figuresView(figures, directory))}`,
  };
}

function figuresView(figures: GetFiguresResponseJson, directory: Directory): TemplateResult {
  const { applications = [], providers = [] } = figures;
  return html`${figureTable(figures)}
    <div class="figures">
      <section aria-labelledby="rate"><h2 id="rate">Calls per second</h2>${rateChart(figures)}</section>
      <section aria-labelledby="length"><h2 id="length">How long calls take</h2>${lengthChart(figures)}</section>
    </div>
    ${subjectTable("By application", applications, figures, ({ publicKey = "" }) => (publicKey === "" ? "deleted" : applicationLink(directory, publicKey)))}
    ${subjectTable("By provider", providers, figures, ({ providerName = "" }) => visibleText(providerName))}`;
}

const PARTS = [
  [
    "total",
    "Whole call",
    "From when the request arrived until its answer was sent; for a streamed answer, until its head was sent.",
  ],
  ["relay", "Relay", "The relay's own work: the whole call without the waits."],
  ["queue", "Queue", "The wait in the queue of calls to the same provider."],
  ["token", "Token", "The wait for an access token: zero unless it had to be refreshed first."],
  ["provider", "Provider", "The wait for the provider's answer."],
] as const;

interface PartRow {
  readonly label: string;
  readonly about: string;
  readonly percentiles: PercentilesJson;
}

const PERCENTILES = {
  p50: "Half of the calls took no longer.",
  p95: "95 of 100 calls took no longer.",
  p99: "99 of 100 calls took no longer.",
} as const;

const PART_COLUMNS: ReadonlyArray<Column<PartRow>> = [
  { label: "Part", cell: ({ label, about }) => term(label, about) },
  ...(["p50", "p95", "p99"] as const).map((name) => ({
    ...{ label: name, about: PERCENTILES[name], isNumeric: true },
    cell: ({ percentiles }: PartRow) => msText(msFrom(percentiles[name])),
  })),
];

/** Totals of the period, and percentiles for each part of the calls. */
export function figureTable({ total = {}, points = [], pointDuration }: GetFiguresResponseJson): TemplateResult {
  const count = Number(total.callCount ?? 0);
  if (count === 0) return html`<p>No calls in this period.</p>`;
  const errors = Number(total.errorCount ?? 0);
  const seconds = points.length * (msFrom(pointDuration) / 1000);
  const rows = PARTS.map(([part, label, about]) => ({ label, about, percentiles: total[part] ?? {} }));
  return html`<dl class="tiles">
      <div><dt>${term("Calls", "Calls that ended in this period.")}</dt><dd>${count.toLocaleString("en")}</dd></div>
      <div><dt>${term("Calls per second", "The mean over the minutes or hours that had calls.")}</dt><dd>${rateText(count / seconds)}</dd></div>
      <div><dt>${term("Errors", "Calls that ended with an error type: refused by the relay, not answered, or answered with 400 or above.")}</dt>
        <dd>${errors.toLocaleString("en")} (${shareText(errors / count)})</dd></div>
    </dl>
    ${dataTable("How long the parts of calls took", PART_COLUMNS, rows)}`;
}

/** The points of the whole period, including those without calls. */
function allPoints(figures: GetFiguresResponseJson): readonly FigurePointJson[] {
  const { points = [], startTime = "", pointDuration, total } = figures;
  const [from, stepMs] = [Date.parse(startTime), msFrom(pointDuration)];
  const known = new Map(points.map((point) => [Date.parse(point.startTime ?? ""), point]));
  const count = stepMs === 0 || total === undefined ? 0 : stepMs > 60_000 ? 168 : 60;
  return Array.from({ length: count }, (_, at) => {
    const time = from + at * stepMs;
    return known.get(time) ?? { startTime: new Date(time).toISOString(), figures: {} };
  });
}

function rateChart(figures: GetFiguresResponseJson): TemplateResult {
  const seconds = msFrom(figures.pointDuration) / 1000;
  const bars = allPoints(figures).map(
    ({ startTime = "", figures: { callCount = "0", errorCount = "0" } = {} }): ChartBar => {
      const [count, errors] = [Number(callCount), Number(errorCount)];
      const label = `${timeText(startTime)}: ${rateText(count / seconds)} calls per second, ${errors} of ${count} failed`;
      return { label, parts: [(count - errors) / seconds, errors / seconds] };
    },
  );
  return html`${barChart({ label: labelOf("Calls per second"), bars, classes: ["success", "error"], text: rateText, ends: endsOf(figures) })}
    <ul class="legend"><li class="success">Succeeded</li><li class="error">Failed</li></ul>`;
}

function lengthChart(figures: GetFiguresResponseJson): TemplateResult {
  const points = allPoints(figures);
  const lines = (["p99", "p95", "p50"] as const).map((name) => ({
    name,
    values: points.map(({ figures: { total } = {} }) =>
      total?.[name] === undefined ? undefined : msFrom(total[name]),
    ),
  }));
  const labels = points.map(({ startTime = "", figures: { total = {} } = {} }) => {
    const texts = (["p50", "p95", "p99"] as const).map((name) => `${name} ${msText(msFrom(total[name]))}`);
    return `${timeText(startTime)}: ${texts.join(", ")}`;
  });
  return html`${lineChart({ label: labelOf("How long calls take"), lines, labels, text: msText, ends: endsOf(figures) })}
    <ul class="legend">${lines.map(({ name }) => html`<li class=${name}>${term(name, PERCENTILES[name])}</li>`)}</ul>`;
}

const labelOf = (what: string) => (top: string) => `${what}, over time. At most ${top}.`;

function endsOf({ startTime = "" }: GetFiguresResponseJson): readonly [string, string] {
  return [timeText(startTime), "now"];
}

function subjectTable(
  caption: string,
  rows: readonly SubjectFiguresJson[],
  { points = [], pointDuration }: GetFiguresResponseJson,
  name: (row: SubjectFiguresJson) => unknown,
): TemplateResult | typeof nothing {
  if (rows.length === 0) return nothing;
  const seconds = points.length * (msFrom(pointDuration) / 1000);
  const count = ({ callCount = "0" }: FiguresJson = {}) => Number(callCount);
  const columns: ReadonlyArray<Column<SubjectFiguresJson>> = [
    { label: "Name", cell: name },
    { label: "Calls", cell: ({ figures }) => count(figures).toLocaleString("en"), isNumeric: true },
    { label: "Per second", cell: ({ figures }) => rateText(count(figures) / seconds), isNumeric: true, isDetail: true },
    {
      label: "Errors",
      cell: ({ figures }) => shareText(Number(figures?.errorCount ?? 0) / Math.max(1, count(figures))),
      isNumeric: true,
    },
    ...(["p50", "p95", "p99"] as const).map((each) => ({
      ...{ label: each, about: PERCENTILES[each], isNumeric: true },
      cell: ({ figures }: SubjectFiguresJson) => msText(msFrom(figures?.total?.[each])),
    })),
  ];
  return html`<section><h2>${caption}</h2>${dataTable(caption, columns, rows)}</section>`;
}

function timeText(timestamp: string): string {
  return new Date(timestamp).toLocaleString("en-GB", { weekday: "short", hour: "2-digit", minute: "2-digit" });
}
