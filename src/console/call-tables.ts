import type { CallRecordJson } from "../../gen/relay/admin/v1/call_record_pb.js";
import { type LiveCall, liveCallFrom } from "./frames.js";
import { html, nothing, svg, type TemplateResult } from "./lit-html.js";
import { addressOf, type Figures, figuresOf, msText, shareText, visibleText } from "./text.js";
import { type Column, clockTime, dataTable, moment, NARROW, stateMark } from "./view.js";

/** Method and URL of a call; of the query only the parameter names. */
export function targetOf({ method = "", origin = "", path = "", queryKeys = [] }: CallRecordJson): TemplateResult {
  if (origin === "")
    return html`<span class="id">${visibleText(method)}</span> <span class="hint">(refused; its URL is not recorded)</span>`;
  const query = queryKeys.length === 0 ? "" : `?${queryKeys.map((key) => `${key}=…`).join("&")}`;
  return html`<span class="id">${visibleText(`${method} ${origin}${path}${query}`)}</span>`;
}

/** How a call ended. */
export function outcomeOf({ statusCode = 0, errorType = "", cause = "" }: CallRecordJson): TemplateResult {
  if (errorType === "") return stateMark(true, String(statusCode));
  return stateMark(false, `${statusCode} ${visibleText(errorType)}${cause === "" ? "" : ` (${visibleText(cause)})`}`);
}

/** Rows that are easy to take in. */
const FEW_ROWS = 20;
/** The same where each row is a card. */
const FEW_CARDS = 10;
/** Rows that a browser can lay out every second without effort. */
const MAX_ROWS = 50;

/** Whether the long or the short list is shown. */
export interface ListLength {
  readonly isLong: boolean;
  readonly toggle: () => void;
}

/** The last calls, newest first; each links to its record. */
export function callList(calls: readonly LiveCall[], { isLong, toggle }: ListLength): TemplateResult {
  if (calls.length === 0) return html`<p>No calls yet. Calls appear here as they end.</p>`;
  const few = matchMedia(NARROW).matches ? FEW_CARDS : FEW_ROWS;
  const shown = calls.slice(0, isLong ? MAX_ROWS : few);
  return html`${dataTable("Last calls", CALL_COLUMNS, shown)}
    ${calls.length <= few ? nothing : html`<p class="actions"><button type="button" aria-expanded=${isLong} @click=${toggle}>${isLong ? "Show fewer calls" : "Show more calls"}</button></p>`}`;
}

const otherColumns = (userId: string): ReadonlyArray<Column<LiveCall>> => [
  { label: "Provider", cell: ({ record }) => visibleText(record.providerName ?? "") },
  {
    label: "Call",
    cell: ({ record }) =>
      html`<a href=${addressOf("call", { callId: record.callId ?? "", userId })}>${targetOf(record)}</a>`,
  },
  { label: "Outcome", cell: ({ record }) => outcomeOf(record) },
  { label: "Whole call", cell: ({ totalMs }) => msText(totalMs), isNumeric: true },
  { label: "Relay time", cell: ({ relayMs }) => msText(relayMs), isNumeric: true, isDetail: true },
  { label: "Provider time", cell: ({ providerMs }) => msText(providerMs), isNumeric: true, isDetail: true },
  { label: "Surface", cell: ({ record }) => visibleText(record.surface ?? ""), isDetail: true },
];

const CALL_COLUMNS: ReadonlyArray<Column<LiveCall>> = [
  { label: "Time", cell: ({ record }) => clockTime(record.startTime ?? "") },
  ...otherColumns(""),
];

/** A static table of recorded calls. @param userId the user of all these calls; empty if they are of several users. */
export function recordTable(caption: string, records: readonly CallRecordJson[], userId = ""): TemplateResult {
  const when: Column<LiveCall> = { label: "When", cell: ({ record }) => moment(record.startTime, "") };
  return dataTable(caption, [when, ...otherColumns(userId)], records.map(liveCallFrom));
}

interface LatencyRow {
  readonly name: string;
  readonly figures: Figures;
}

/** Table of where the time of the calls went. */
export function latencyTable(calls: readonly LiveCall[]): TemplateResult {
  const rows = [
    row("Relay", calls, ({ relayMs }) => relayMs),
    row("Waits for a token or in the queue", calls, ({ waitMs }) => waitMs),
    row("Provider", calls, ({ providerMs }) => providerMs),
    row("Whole call", calls, ({ totalMs }) => totalMs),
  ].flat();
  return rows.length === 0 ? html`<p>No calls yet.</p>` : dataTable("Where the time went", LATENCY_COLUMNS, rows);
}

function row(name: string, calls: readonly LiveCall[], of: (call: LiveCall) => number): readonly LatencyRow[] {
  const figures = figuresOf(calls.map(of));
  return figures === undefined ? [] : [{ name, figures }];
}

const LATENCY_COLUMNS = [
  { label: "Part", cell: ({ name }: LatencyRow) => name },
  { label: "Median", cell: ({ figures }: LatencyRow) => msText(figures.median), isNumeric: true },
  { label: "95 %", cell: ({ figures }: LatencyRow) => msText(figures.p95), isNumeric: true },
  { label: "Longest", cell: ({ figures }: LatencyRow) => msText(figures.longest), isNumeric: true },
];

interface OutcomeRow {
  readonly outcome: string;
  readonly count: number;
  readonly share: number;
}

/** How the calls ended: successes, and errors by type, most frequent first. */
export function outcomeTable(calls: readonly LiveCall[]): TemplateResult {
  const counts = new Map<string, number>();
  for (const { record } of calls) {
    const outcome = record.errorType || "Success";
    counts.set(outcome, (counts.get(outcome) ?? 0) + 1);
  }
  const rows = [...counts]
    .map(([outcome, count]) => ({ outcome, count, share: count / calls.length }))
    .toSorted((one, other) => other.count - one.count);
  return rows.length === 0 ? html`<p>No calls yet.</p>` : dataTable("How the calls ended", OUTCOME_COLUMNS, rows);
}

const OUTCOME_COLUMNS = [
  { label: "Outcome", cell: ({ outcome }: OutcomeRow) => visibleText(outcome) },
  { label: "Calls", cell: ({ count }: OutcomeRow) => count, isNumeric: true },
  { label: "Share", cell: shareOf },
];

function shareOf({ outcome, share }: OutcomeRow): TemplateResult {
  const kind = outcome === "Success" ? "success" : "error";
  return html`<span class="share">
    <svg viewBox="0 0 100 8" aria-hidden="true" preserveAspectRatio="none">
      ${svg`<rect class=${kind} width=${share * 100} height="8" />`}
    </svg>
    <span>${shareText(share)}</span>
  </span>`;
}
