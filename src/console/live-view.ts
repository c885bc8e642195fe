import type { WatchCallRecordsRequestJson } from "../../gen/relay/admin/v1/call_record_pb.js";
import { type Announcer, createAnnouncer } from "./announcer.js";
import { createCallFeed } from "./call-feed.js";
import { callList, type ListLength } from "./call-list.js";
import { latencyPlot } from "./latency-plot.js";
import { latencyTable } from "./latency-table.js";
import { html, type TemplateResult } from "./lit-html.js";
import type { LiveCall } from "./live-call.js";
import { problemNotice } from "./notices.js";
import { outcomeTable } from "./outcome-table.js";
import type { View, ViewContext } from "./view.js";

type Filter = Required<Pick<WatchCallRecordsRequestJson, "publicKey" | "providerName" | "errorType">>;

const NO_FILTER: Filter = { publicKey: "", providerName: "", errorType: "" };

/** Calls as they end, where their time went, and how they ended. */
export function createLiveView({ api, update }: ViewContext): View {
  const feed = createCallFeed(api, update);
  let announcer: Announcer | undefined;
  let filter = NO_FILTER;
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

  function search(event: SubmitEvent): void {
    event.preventDefault();
    const form = new FormData(event.currentTarget as HTMLFormElement);
    filter = { ...NO_FILTER, ...Object.fromEntries([...form].map(([name, value]) => [name, String(value).trim()])) };
    paused = undefined;
    feed.follow(filter);
    update();
  }

  return {
    title: "Live calls",
    enter() {
      feed.follow(filter);
      announcer = createAnnouncer(() => feed, update);
    },
    leave() {
      feed.stop();
      announcer?.close();
      paused = undefined;
      held = undefined;
    },
    render: () => html`<h1 tabindex="-1">Live calls</h1>
      ${filterForm(filter, search)}
      <p class="actions">
        <button type="button" aria-pressed=${paused !== undefined} @click=${togglePause}>Pause the list</button>
        <span class="hint">${pauseText(paused, held, feed.count)}</span>
      </p>
      <p class="unseen" aria-live=${paused === undefined ? "polite" : "off"}>${announcer?.text}</p>
      ${problemNotice(feed)} ${callsView(paused ?? feed.calls, paused ?? held ?? feed.calls, list)}`,
  };
}

function pauseText(paused: unknown, held: unknown, count: number): string {
  if (paused !== undefined) return `Paused. ${count} calls seen; new ones are shown when the list goes on.`;
  if (held !== undefined) return `${count} calls seen; the list stands still while a call in it has the focus.`;
  return `${count} calls seen.`;
}

function filterForm(filter: Filter, onSubmit: (event: SubmitEvent) => void): TemplateResult {
  const field = (name: keyof Filter, label: string) =>
    html`<label>${label}<input name=${name} .value=${filter[name]} autocomplete="off" spellcheck="false" /></label>`;
  return html`<details>
    <summary>Which calls</summary>
    <form class="filter" role="search" aria-label="Calls" @submit=${onSubmit}>
      ${field("providerName", "Provider")} ${field("publicKey", "Application's public key")}
      ${field("errorType", "Error type")}
      <button type="submit" class="main">Show</button>
    </form>
  </details>`;
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
