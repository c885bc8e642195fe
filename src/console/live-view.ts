import type { CallRecordJson, WatchCallRecordsRequestJson } from "../../gen/relay/admin/v1/call_record_pb.js";
import { type Api, NO_ANSWER } from "./api.js";
import { callList, type ListLength, latencyTable, outcomeTable } from "./call-tables.js";
import { barChart, type ChartBar } from "./charts.js";
import { type LiveCall, liveCallFrom } from "./frames.js";
import { html, nothing, type TemplateResult } from "./lit-html.js";
import { ApiError } from "./loading.js";
import { createSearchForm, type SearchField } from "./search-form.js";
import { countText, figuresOf, msText } from "./text.js";
import { busyNotice, problemNotice, type View, type ViewContext } from "./view.js";

type Name = "publicKey" | "providerName" | "errorType";

const FIELDS: ReadonlyArray<SearchField<Name>> = [
  { name: "publicKey", label: "Application", kind: "application" },
  { name: "providerName", label: "Provider", kind: "provider" },
  { name: "errorType", label: "Error type", kind: "errorType" },
];

/** Live view of calls as they end: where their time went, and how they ended. */
export function createLiveView(context: ViewContext): View {
  const { api, update } = context;
  const feed = createCallFeed(api, update);
  const search = createSearchForm(context, { view: "live", label: "Calls", fields: FIELDS, button: "Show" });
  let announcer: ReturnType<typeof createAnnouncer> | undefined;
  /** Calls shown while the list is paused; undefined while it is running. */
  let paused: readonly LiveCall[] | undefined;
  /** Calls listed while a row has the focus, so that it does not move under the user's fingers. */
  let held: readonly LiveCall[] | undefined;

  const list = {
    isLong: false,
    toggle() {
      list.isLong = !list.isLong;
      update();
    },
    hold(event: FocusEvent) {
      if ((event.target as Element).closest("tr") === null) return;
      held ??= feed.calls;
      update();
    },
    release(event: FocusEvent) {
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
      feed.follow(search.enter(parameters));
      announcer = createAnnouncer(feed, update);
    },
    leave() {
      feed.stop();
      announcer?.close();
      paused = undefined;
      held = undefined;
    },
    render: () => html`<h1 tabindex="-1">Live calls</h1>
      ${search.render()}
      <p class="actions">
        <button type="button" aria-pressed=${paused !== undefined} @click=${togglePause}>Pause the list</button>
        <span class="hint">${pauseText(paused, held, feed.count)}</span>
      </p>
      <p class="unseen" aria-live=${paused === undefined ? "polite" : "off"}>${announcer?.text}</p>
      ${problemNotice(feed)} ${busyNotice(feed)} ${feed.isBusy ? nothing : callsView(paused ?? feed.calls, paused ?? held ?? feed.calls, list)}`,
  };
}

function pauseText(paused: unknown, held: unknown, count: number): string {
  const seen = `${countText(count, "call")} seen`;
  if (paused !== undefined) return `Paused. ${seen}; new ones appear when the list continues.`;
  if (held !== undefined) return `${seen}; the list stands still while a call in it has the focus.`;
  return `${seen}.`;
}

/** Options of the list, with the handlers that freeze it while a row has the focus. */
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

/** Interval between announcements, in milliseconds: a sentence takes some seconds to read out. */
const EVERY_MS = 10_000;

/**
 * Announces new calls to screen readers, rate-limited so that each sentence can be heard.
 *
 * @param onChange called when the text has changed.
 */
function createAnnouncer(feed: CallFeed, onChange: () => void) {
  let said = { count: 0, failures: 0 };
  const timer = setInterval(() => {
    const { count, failures } = feed;
    if (count > said.count) {
      announcer.text = `${countText(count - said.count, "new call")}, ${failures - said.failures} of them failed.`;
      onChange();
    }
    said = { count, failures };
  }, EVERY_MS);
  const announcer = { text: "", close: () => clearInterval(timer) };
  return announcer;
}

/** Number of calls in the plot. */
const BARS = 60;
/** Minimum height of the axis, in milliseconds: below this the plot would only show noise. */
const MIN_TOP_MS = 10;

const PARTS = [
  { name: "Provider", className: "provider", of: (call: LiveCall) => call.providerMs },
  { name: "Waits for a token or in the queue", className: "wait", of: (call: LiveCall) => call.waitMs },
  { name: "Relay", className: "relay", of: (call: LiveCall) => call.relayMs },
] as const;

/**
 * Stacked bars of the last calls, the newest on the right: the time of each call, by part. The table beside it gives the
 * same as numbers.
 *
 * @param calls newest first.
 */
function latencyPlot(calls: readonly LiveCall[]): TemplateResult {
  const shown = calls.slice(0, BARS);
  const room = Array.from({ length: BARS - shown.length }, () => ({ label: "", parts: [] }));
  const bars = shown.map((call): ChartBar => {
    const texts = PARTS.map(({ name, of }) => `${name}: ${msText(of(call))}`);
    return { label: texts.join(", "), parts: PARTS.map(({ of }) => of(call)) };
  });
  return html`${barChart({
    ...{ label: () => labelOf(shown), text: msText, ends: ["older", "newest"], topValue: topOf(shown) },
    ...{ bars: [...room, ...bars.reverse()], classes: PARTS.map(({ className }) => className) },
  })}
    <ul class="legend">
      ${PARTS.map(({ name, className }) => html`<li class=${className}>${name}</li>`)}
      <li class="cut">Longer than shown</li>
    </ul>`;
}

/** Caps the axis at 1.5 times the 95th percentile, so that a few slow calls do not flatten the rest: they are cut. */
function topOf(calls: readonly LiveCall[]): number {
  const figures = figuresOf(calls.map(({ totalMs }) => totalMs));
  return Math.max(MIN_TOP_MS, Math.min(figures?.longest ?? 0, (figures?.p95 ?? 0) * 1.5));
}

function labelOf(calls: readonly LiveCall[]): string {
  const median = (of: (call: LiveCall) => number) => msText(figuresOf(calls.map(of))?.median ?? 0);
  if (calls.length === 0) return "No calls yet.";
  const [provider, , relay] = PARTS;
  return `Time of the last ${countText(calls.length, "call")}. At the median, the provider took ${median(provider.of)}, the relay ${median(relay.of)}.`;
}

/** Number of calls kept: enough for the figures. */
const MAX_CALLS = 200;
/** Retry delay in milliseconds; a restarting relay is back sooner. */
const RETRY_MS = 2000;

type CallFeed = ReturnType<typeof createCallFeed>;

/** The last calls, kept up to date. @param onChange called for new calls and for errors. */
function createCallFeed(api: Api, onChange: () => void) {
  let following = new AbortController();
  const feed = {
    /** Newest first. */
    calls: [] as readonly LiveCall[],
    /** The first calls are still being loaded. */
    isBusy: false,
    /** Calls seen since the start, including those dropped from `calls`. */
    count: 0,
    /** How many of them failed. */
    failures: 0,
    /** Why no calls arrive at the moment; undefined when they do. */
    problem: undefined as string | undefined,
    /** Starts over with another filter: loads the last matching calls, then follows new ones. */
    follow(filter: WatchCallRecordsRequestJson) {
      following.abort();
      following = new AbortController();
      Object.assign(feed, { calls: [], isBusy: true, count: 0, failures: 0, problem: undefined });
      void keepWatching(filter, following.signal);
    },
    stop: () => following.abort(),
  };

  function add(records: readonly CallRecordJson[]): void {
    const known = new Set(feed.calls.map(({ record }) => record.callId));
    const fresh = records.filter(({ callId }) => !known.has(callId)).map(liveCallFrom);
    feed.count += fresh.length;
    feed.failures += fresh.filter(({ record }) => record.errorType).length;
    feed.calls = [...fresh.reverse(), ...feed.calls].slice(0, MAX_CALLS);
    onChange();
  }

  /** Lists past calls only after the stream's first message, so that no call falls in between. */
  async function watch(filter: WatchCallRecordsRequestJson, signal: AbortSignal): Promise<void> {
    let isFirst = true;
    for await (const { callRecords = [] } of api.stream("CallRecordService/WatchCallRecords", filter, signal)) {
      if (signal.aborted) return;
      if (isFirst) {
        const past = await api.call("CallRecordService/ListCallRecords", { ...filter, pageSize: MAX_CALLS });
        if (signal.aborted) return;
        feed.isBusy = false;
        add((past.callRecords ?? []).toReversed());
      }
      isFirst = false;
      feed.problem = undefined;
      add(callRecords);
    }
  }

  /** Opens a new stream whenever one ends: after an hour, or when the relay stops. */
  async function keepWatching(filter: WatchCallRecordsRequestJson, signal: AbortSignal): Promise<void> {
    while (!signal.aborted) {
      await watch(filter, signal).catch((error: unknown) => {
        if (signal.aborted) return;
        feed.isBusy = false;
        feed.problem = error instanceof ApiError ? error.message : NO_ANSWER;
        onChange();
      });
      await new Promise((resolve) => setTimeout(resolve, RETRY_MS));
    }
  }

  return feed;
}
