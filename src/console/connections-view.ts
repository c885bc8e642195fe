import type {
  Connection_StateJson,
  ConnectionJson,
  ListConnectionsResponseJson,
} from "../../gen/relay/admin/v1/connection_pb.js";
import { searched } from "./form.js";
import { html, nothing, type TemplateResult } from "./lit-html.js";
import { ApiError, createLoader, createPages, type Loading } from "./loading.js";
import { visibleText } from "./text.js";
import { type KnownNames, loadKnownNames, suggestionLists, tryAddress } from "./try-view.js";
import {
  busyNotice,
  type Column,
  dataTable,
  moment,
  pager,
  problemNotice,
  stateMark,
  type View,
  type ViewContext,
} from "./view.js";

/** Rows of one page: what a person looks through, and what a browser lays out in no time. */
const PAGE_SIZE = 50;

/** Connections with their states, page by page. */
export function createConnectionsView({ api, update }: ViewContext): View {
  const found = createLoader<ListConnectionsResponseJson>(update);
  const names = createLoader<KnownNames>(update);
  const pages = createPages();
  let filter = filterFrom(new URLSearchParams());

  async function load(): Promise<void> {
    const request = { ...filter, pageSize: PAGE_SIZE, pageToken: pages.token };
    await found.load(async () => {
      requireApplication(filter);
      return api.call("ConnectionService/ListConnections", request);
    });
    pages.noteNext(found.value?.nextPageToken);
    update();
  }

  function show(parameters: URLSearchParams): void {
    filter = filterFrom(parameters);
    pages.reset();
    void load();
  }

  /** Whether connections may exist that are not shown. */
  const isNarrowed = () =>
    pages.token !== "" || Object.values(filter).some((value) => value !== "" && value !== "STATE_UNSPECIFIED");

  return {
    title: "Connections",
    enter(parameters) {
      show(parameters);
      void names.load(() => loadKnownNames(api));
    },
    leave() {},
    render: () => html`<h1 tabindex="-1">Connections</h1>
      ${filterForm(filter, (event) => show(searched(event)))} ${suggestionLists(names.value)}
      ${problemNotice(found)} ${resultOf(found, isNarrowed())} ${busyNotice(found)}
      ${found.value === undefined ? nothing : pager(pages, found.isBusy, () => void load())}`,
  };
}

/** An id means a user of one application. */
function requireApplication({ publicKey, userIdPrefix }: Filter): void {
  if (userIdPrefix === "" || publicKey !== "") return;
  throw new ApiError("invalid_argument", "Name the application as well: user ids are an application's own.");
}

interface Filter {
  readonly publicKey: string;
  readonly userIdPrefix: string;
  readonly providerName: string;
  readonly state: Connection_StateJson;
}

function filterFrom(parameters: URLSearchParams): Filter {
  const text = (name: string) => parameters.get(name) ?? "";
  const state = text("state");
  return {
    publicKey: text("publicKey"),
    userIdPrefix: text("userIdPrefix"),
    providerName: text("providerName"),
    state: state === "STATE_ACTIVE" || state === "STATE_REAUTHORIZATION_REQUIRED" ? state : "STATE_UNSPECIFIED",
  };
}

function filterForm(filter: Filter, onSubmit: (event: SubmitEvent) => void): TemplateResult {
  const field = (name: keyof Filter, label: string, list?: string) =>
    html`<label
      >${label}<input name=${name} list=${list ?? nothing} .value=${filter[name]} autocomplete="off" spellcheck="false"
    /></label>`;
  const option = (value: Connection_StateJson, label: string) =>
    html`<option value=${value} ?selected=${filter.state === value}>${label}</option>`;
  return html`<form class="filter" role="search" aria-label="Connections" @submit=${onSubmit}>
    ${field("publicKey", "Application's public key", "known-applications")}
    ${field("userIdPrefix", "User id begins with")} ${field("providerName", "Provider", "known-providers")}
    <label>
      State
      <select name="state">
        ${option("STATE_UNSPECIFIED", "Any")} ${option("STATE_ACTIVE", "Active")}
        ${option("STATE_REAUTHORIZATION_REQUIRED", "Must connect again")}
      </select>
    </label>
    <button type="submit" class="main">Search</button>
  </form>`;
}

function resultOf(
  { value }: Loading<ListConnectionsResponseJson>,
  isNarrowed: boolean,
): TemplateResult | typeof nothing {
  if (value === undefined) return nothing;
  const { connections = [], nextPageToken = "" } = value;
  if (connections.length > 0) return dataTable("Connections", COLUMNS, connections);
  // A page of a long list may have none and still not be the last (AIP-158).
  if (nextPageToken !== "") return html`<p>None on this page; there are more to look through.</p>`;
  if (isNarrowed) return html`<p>There is no such connection.</p>`;
  return html`<p>
    There is no connection yet. Users make them in a browser, with a link of <code>relay connection link</code>, and
    <code>relay connection put</code> stores tokens that you have.
  </p>`;
}

const COLUMNS: ReadonlyArray<Column<ConnectionJson>> = [
  { label: "User", cell: ({ userId = "" }) => html`<bdi class="id">${visibleText(userId)}</bdi>` },
  { label: "Provider", cell: ({ providerName = "" }) => visibleText(providerName) },
  { label: "Values", cell: valuesOf },
  { label: "State", cell: stateOf },
  { label: "Token ends", cell: ({ expireTime }) => moment(expireTime, "not known") },
  { label: "Refresh", cell: refreshOf },
  { label: "Changed", cell: ({ updateTime }) => moment(updateTime, "") },
  { label: "Application", cell: ({ publicKey = "" }) => html`<span class="id">${visibleText(publicKey)}</span>` },
  { label: "More", cell: links },
];

/** Those that are no secrets. */
export function valuesOf({ originParameters = {} }: ConnectionJson): TemplateResult {
  const pairs = Object.entries(originParameters).map(([name, value]) => `${name}=${value}`);
  return html`<bdi>${visibleText(pairs.join(", "))}</bdi>`;
}

/** Whether calls can be made, in words. */
export function stateOf({ state, stateReason = "" }: ConnectionJson): TemplateResult {
  if (state === "STATE_ACTIVE") return stateMark(true, "Active");
  return stateMark(false, `Must connect again (${visibleText(stateReason)})`);
}

/** Kinds of connection of which nothing expires. */
const WITHOUT_TOKENS = ["api_key", "basic", "oauth1"];

/** Whether its token is refreshed, and since when that fails. */
export function refreshOf(connection: ConnectionJson) {
  const { state, tokenType, hasRefreshToken, refreshFailureCount = 0, lastRefreshFailure = "" } = connection;
  if (state !== "STATE_ACTIVE") return "No more";
  if (!hasRefreshToken) return WITHOUT_TOKENS.includes(tokenType ?? "") ? "Not needed" : "No refresh token";
  if (refreshFailureCount === 0) return "By itself";
  const { refreshFailingTime, nextRefreshTime } = connection;
  return html`${stateMark(false, `Failed ${refreshFailureCount} times (${visibleText(lastRefreshFailure)})`)} since
  ${moment(refreshFailingTime, "not known")}, next try ${moment(nextRefreshTime, "at the next call")}`;
}

function links({ publicKey = "", userId = "", providerName = "" }: ConnectionJson): TemplateResult {
  const whose = `${visibleText(userId)} at ${visibleText(providerName)}`;
  const address = `#/connection?${new URLSearchParams({ publicKey, userId, providerName })}`;
  return html`<a href=${address} aria-label="Open the connection of ${whose}">Open</a>
    <a href=${tryAddress({ publicKey, userId, providerName })} aria-label="Try a call for ${whose}">Try</a>`;
}
