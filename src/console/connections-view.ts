import type {
  ConnectionJson,
  ListConnectionsRequestJson,
  ListConnectionsResponseJson,
} from "../../gen/relay/admin/v1/connection_pb.js";
import { stateOf, withoutRefresh } from "./connection-state.js";
import { applicationLink, type Directory } from "./directory.js";
import { html, nothing, type TemplateResult } from "./lit-html.js";
import { createPagedList } from "./loading.js";
import { createSearchForm, requireApplication, type SearchField, type Sought } from "./search-form.js";
import { addressOf, countText, visibleText } from "./text.js";
import { type Column, dataTable, lasting, moment, pageView, stateMark, type View, type ViewContext } from "./view.js";

/** Rows per page: quick to look through, and quick to lay out. */
const PAGE_SIZE = 50;
/** The relay scans up to fifty thousand connections for each page. */
const MAX_EMPTY_PAGES = 20;

type Name = "publicKey" | "userIdPrefix" | "providerName" | "state";

const FIELDS: ReadonlyArray<SearchField<Name>> = [
  { name: "publicKey", label: "Application", kind: "application" },
  { name: "userIdPrefix", label: "User id begins with", kind: "user" },
  { name: "providerName", label: "Provider", kind: "provider" },
  {
    ...{ name: "state", label: "State", kind: "choice" },
    choices: [
      ["", "Any"],
      ["STATE_ACTIVE", "Active"],
      ["failing", "Refreshing fails"],
      ["STATE_REAUTHORIZATION_REQUIRED", "Must connect again"],
    ],
  },
];

/** Connections with their states, page by page. */
export function createConnectionsView(context: ViewContext): View {
  const { api, directory, update } = context;
  const search = createSearchForm(context, { view: "connections", label: "Connections", fields: FIELDS });
  let sought = search.enter(new URLSearchParams());

  /** Skips empty pages, up to a million scanned connections. */
  const found = createPagedList(update, async (pageToken, isWanted) => {
    requireApplication(sought.userIdPrefix, sought);
    const request = { ...requestFrom(sought), pageSize: PAGE_SIZE };
    const ask = (token: string) => api.call("ConnectionService/ListConnections", { ...request, pageToken: token });
    let page = await ask(pageToken);
    for (let asked = 1; asked < MAX_EMPTY_PAGES && isWanted(); asked += 1) {
      if (page.connections?.length || !page.nextPageToken) break;
      page = await ask(page.nextPageToken);
    }
    return page;
  });

  /** Whether other connections may exist, since a filter is set or this is not the first page. */
  const isNarrowed = () => (found.value?.tokens.length ?? 0) > 1 || Object.values(sought).some((value) => value !== "");

  return {
    title: "Connections",
    staysInPlace: true,
    enter(parameters) {
      sought = search.enter(parameters);
      void found.open();
    },
    leave: found.clear,
    render: () => html`<h1 tabindex="-1">Connections</h1>
      ${search.render()} ${pageView(found, (page) => listOf(page, isNarrowed(), directory))}`,
  };
}

function requestFrom({ state, ...filter }: Sought<Name>): ListConnectionsRequestJson {
  if (state === "failing") return { ...filter, refreshFailing: true };
  return state === "STATE_ACTIVE" || state === "STATE_REAUTHORIZATION_REQUIRED" ? { ...filter, state } : filter;
}

function listOf(
  { connections = [], nextPageToken = "" }: ListConnectionsResponseJson,
  isNarrowed: boolean,
  directory: Directory,
): TemplateResult {
  if (connections.length > 0) return dataTable("Connections", connectionColumns(directory), connections);
  // A page may be empty without being the last (AIP-158).
  if (nextPageToken !== "") return html`<p>None on this page; later pages may have some.</p>`;
  if (isNarrowed) return html`<p>There is no such connection.</p>`;
  return html`<p>
    There is no connection yet. A user creates one in a browser, with a connect link of an
    <a href="#/applications">application</a>; tokens that you already have can be stored there as well.
  </p>`;
}

/** The columns of a list of connections. */
export const connectionColumns = (directory: Directory): ReadonlyArray<Column<ConnectionJson>> => [
  { label: "User", cell: ({ userId = "" }) => html`<bdi class="id">${visibleText(userId)}</bdi>` },
  { label: "Provider", cell: ({ providerName = "" }) => visibleText(providerName) },
  { label: "Values", cell: valuesOf },
  { label: "State", cell: stateOf },
  { label: "Token expires", cell: ({ expireTime }) => moment(expireTime, "unknown") },
  { label: "Refresh", cell: refreshOf },
  { label: "Changed", cell: ({ updateTime }) => moment(updateTime, ""), isDetail: true },
  { label: "Application", cell: ({ publicKey = "" }) => applicationLink(directory, publicKey) },
  { label: "More", cell: links },
];

/** The connection's values that are not secret. */
export function valuesOf({ originParameters = {} }: ConnectionJson): TemplateResult | typeof nothing {
  const pairs = Object.entries(originParameters).map(([name, value]) => `${name}=${value}`);
  return pairs.length === 0 ? nothing : html`<bdi>${visibleText(pairs.join(", "))}</bdi>`;
}

/** Whether the token is refreshed, and if that fails, since when. */
function refreshOf(connection: ConnectionJson) {
  const { state, hasRefreshToken, refreshFailureCount = 0, lastRefreshFailure = "" } = connection;
  if (state !== "STATE_ACTIVE") return "Ended";
  if (!hasRefreshToken) return withoutRefresh(connection);
  if (refreshFailureCount === 0) return "Automatic";
  const { refreshFailingTime, nextRefreshTime } = connection;
  const failed = `Failed ${countText(refreshFailureCount, "time")} (${visibleText(lastRefreshFailure)})`;
  const lasted = refreshFailingTime === undefined ? nothing : html` ${lasting(refreshFailingTime)}`;
  return html`${stateMark(false, failed)}${lasted}, next try ${moment(nextRefreshTime, "at the next call")}`;
}

function links({ publicKey = "", userId = "", providerName = "" }: ConnectionJson): TemplateResult {
  const whose = `${visibleText(userId)} at ${visibleText(providerName)}`;
  const key = { publicKey, userId, providerName };
  return html`<a href=${addressOf("connection", key)} aria-label="Open the connection of ${whose}">Open</a>
    <a href=${addressOf("try", key)} aria-label="Try a call for ${whose}">Try</a>`;
}
