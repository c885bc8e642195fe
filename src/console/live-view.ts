import { createCallFeed } from "./call-feed.js";
import { callList, type ListLength, latencyTable, outcomeTable } from "./call-tables.js";
import type { LiveCall } from "./frames.js";
import { html, svg, type TemplateResult } from "./lit-html.js";
import { createSearchForm, type SearchField } from "./search-form.js";
import { figuresOf, msText } from "./text.js";
import { problemNotice, type View, type ViewContext } from "./view.js";

type Name = "publicKey" | "providerName" | "errorType";

const FIELDS: ReadonlyArray<SearchField<Name>> = [
  { name: "publicKey", label: "Application", kind: "application" },
  { name: "providerName", label: "Provider", kind: "provider" },
  { name: "errorType", label: "Error type" },
];

/** Calls as they end, where their time went, and how they ended. */
export function createLiveView(context: ViewContext): View {
  const { api, update } = context;
  const feed = createCallFeed(api, update);
  const search = createSearchForm(context, { view: "live", label: "Calls", fields: FIELDS, button: "Show" });
  let announcer: Announcer | undefined;
  /** What stays in sight while the list is paused; undefined while it goes on. */
  let paused: readonly LiveCall[] | undefined;
  /** The same while a call has the focus: it must not become another one under the fingers. */
  let held: readonly LiveCall[] | undefined;
  let isLong = false;

  const list: ListOptions = {
    get isLong() {
      return isLong;
    },
    toggle() {
      isLong = !isLong;
      update();
    },
    hold(event) {
      if ((event.target as Element).closest("tr") === null) return;
      held ??= feed.calls;
      update();
    },
    release(event) {
      if ((event.relatedTarget as Element | null)?.closest("tr")) return;
      held = undefined;
      update();
    },
  };

  function togglePause(): void {
    paused = paused === undefined ? feed.calls : undefined;
    update();
  }

  return {
    title: "Live calls",
    staysInPlace: true,
    enter(parameters) {
      paused = undefined;
      feed.follow(search.enter(parameters));
      announcer?.close();
      announcer = createAnnouncer(() => feed, update);
    },
    leave() {
      feed.stop();
      announcer?.close();
      paused = undefined;
      held = undefined;
    },
    render: () => html`<h1 tabindex="-1">Live calls</h1>
      <details>
        <summary>Which calls</summary>
        ${search.render()}
      </details>
      <p class="actions">
        <button type="button" aria-pressed=${paused !== undefined} @click=${togglePause}>Pause the list</button>
        <span class="hint">${pauseText(paused, held, feed.count)}</span>
      </p>
      <p class="unseen" aria-live=${paused === undefined ? "polite" : "off"}>${announcer?.text}</p>
      ${problemNotice(feed)} ${callsView(paused ?? feed.calls, paused ?? held ?? feed.calls, list)}`,
  };
}

function pauseText(paused: unknown, held: unknown, count: number): string {
  if (paused !== undefined) return `Paused. ${count} calls seen; new ones appear when the list continues.`;
  if (held !== undefined) return `${count} calls seen; the list stands still while a call in it has the focus.`;
  return `${count} calls seen.`;
}

/** The list, and how it is kept still. */
interface ListOptions extends ListLength {
  readonly hold: (event: FocusEvent) => void;
  readonly release: (event: FocusEvent) => void;
}

function callsView(calls: readonly LiveCall[], listed: readonly LiveCall[], list: ListOptions): TemplateResult {
  return html`<div class="figures">
      <section aria-labelledby="latency">
        <h2 id="latency">Where the time goes</h2>
        ${latencyPlot(calls)} ${latencyTable(calls)}
      </section>
      <section aria-labelledby="outcomes">
        <h2 id="outcomes">How calls end</h2>
        ${outcomeTable(calls)}
      </section>
    </div>
    <section aria-labelledby="calls">
      <h2 id="calls">Last calls</h2>
      <div @focusin=${list.hold} @focusout=${list.release}>${callList(listed, list)}</div>
    </section>`;
}

/** Says how many calls came, not more often than can be listened to. */
interface Announcer {
  /** What is to be said at the moment. */
  readonly text: string;
  close(): void;
}

/** How many there were since the start. */
interface CallCounts {
  readonly count: number;
  readonly failures: number;
}

/** A sentence takes some seconds to say, in milliseconds. */
const EVERY_MS = 10_000;

/** @param onChange the text is another one. */
function createAnnouncer(counts: () => CallCounts, onChange: () => void): Announcer {
  let text = "";
  let said = { count: 0, failures: 0 };
  const timer = setInterval(() => {
    const { count, failures } = counts();
    if (count > said.count) {
      text = `${count - said.count} new calls, ${failures - said.failures} of them failed.`;
      onChange();
    }
    said = { count, failures };
  }, EVERY_MS);
  return {
    get text() {
      return text;
    },
    close: () => clearInterval(timer),
  };
}

/** Calls in the plot. */
const BARS = 60;
/** In units of the drawing, which is stretched to the room there is; a bar is one wide. */
const HEIGHT = 100;
const GAP = 0.2;
/** The end of a bar that is cut. */
const CUT = 2;
/** Below this a plot would only show noise. */
const MIN_TOP_MS = 10;

const PARTS = [
  { name: "Provider", className: "provider", of: (call: LiveCall) => call.providerMs },
  { name: "Waits for a token or a turn", className: "wait", of: (call: LiveCall) => call.waitMs },
  { name: "Relay", className: "relay", of: (call: LiveCall) => call.relayMs },
] as const;

/**
 * The last calls as bars, the newest at the right: each is the time of one call, in its parts. The table beside it says
 * the same in numbers.
 *
 * @param calls newest first.
 */
function latencyPlot(calls: readonly LiveCall[]): TemplateResult {
  const shown = calls.slice(0, BARS);
  const topMs = topOf(shown);
  return html`<figure>
    <div class="plot">
      <div class="axis" aria-hidden="true">
        ${[1, 0.5, 0].map((share) => html`<span>${share === 0 ? "0" : msText(topMs * share)}</span>`)}
      </div>
      <svg viewBox="0 0 ${BARS} ${HEIGHT}" preserveAspectRatio="none" role="img" aria-label=${labelOf(shown)}>
        ${[0, 0.5, 1].map((share) => svg`<line x1="0" x2=${BARS} y1=${HEIGHT * share} y2=${HEIGHT * share} />`)}
        ${shown.map((call, at) => bar(call, BARS - 1 - at, topMs))}
      </svg>
    </div>
    <figcaption>
      <ul class="legend">
        ${PARTS.map(({ name, className }) => html`<li class=${className}>${name}</li>`)}
        <li class="cut">Longer than shown</li>
      </ul>
    </figcaption>
  </figure>`;
}

/** A few slow calls do not press all others flat: their bars are cut. */
function topOf(calls: readonly LiveCall[]): number {
  const figures = figuresOf(calls.map(({ totalMs }) => totalMs));
  return Math.max(MIN_TOP_MS, Math.min(figures?.longest ?? 0, (figures?.p95 ?? 0) * 1.5));
}

function bar(call: LiveCall, x: number, topMs: number): TemplateResult {
  let fromMs = 0;
  const piece = (className: string, y: number, height: number) =>
    svg`<rect class=${className} x=${x + GAP / 2} y=${y} width=${1 - GAP} height=${height} />`;
  const pieces = PARTS.map(({ className, of }) => {
    const start = (Math.min(topMs, fromMs) / topMs) * HEIGHT;
    fromMs += of(call);
    const end = (Math.min(topMs, fromMs) / topMs) * HEIGHT;
    return piece(className, HEIGHT - end, end - start);
  });
  return svg`<g>${pieces}${call.totalMs > topMs ? piece("cut", 0, CUT) : ""}</g>`;
}

function labelOf(calls: readonly LiveCall[]): string {
  const median = (of: (call: LiveCall) => number) => msText(figuresOf(calls.map(of))?.median ?? 0);
  if (calls.length === 0) return "No call yet.";
  const [provider, , relay] = PARTS;
  return `Time of the last ${calls.length} calls. In the median the provider took ${median(provider.of)}, the relay ${median(relay.of)}.`;
}
