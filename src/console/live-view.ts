import type { WatchCallRecordsRequestJson } from "../../gen/relay/admin/v1/call_record_pb.js";
import { type Announcer, createAnnouncer } from "./announcer.js";
import { createCallFeed } from "./call-feed.js";
import { callList } from "./call-list.js";
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
    },
    render: () => html`<h1 tabindex="-1">Live calls</h1>
      ${filterForm(filter, search)}
      <p class="actions">
        <button type="button" aria-pressed=${paused !== undefined} @click=${togglePause}>Pause the list</button>
        <span class="hint">${pauseText(paused, feed.count)}</span>
      </p>
      <p class="unseen" aria-live=${paused === undefined ? "polite" : "off"}>${announcer?.text}</p>
      ${problemNotice(feed)} ${callsView(paused ?? feed.calls)}`,
  };
}

function pauseText(paused: readonly LiveCall[] | undefined, count: number): string {
  return paused === undefined
    ? `${count} calls seen.`
    : `Paused. ${count} calls seen; new ones are shown when the list goes on.`;
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

function callsView(calls: readonly LiveCall[]): TemplateResult {
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
      ${callList(calls)}
    </section>`;
}
