import type { ApplicationJson } from "../../gen/relay/admin/v1/application_pb.js";
import type { CallRecordJson } from "../../gen/relay/admin/v1/call_record_pb.js";
import type { ConnectionJson } from "../../gen/relay/admin/v1/connection_pb.js";
import type { Api } from "./api.js";
import { callAddress, recordTable } from "./call-tables.js";
import { connectionColumns } from "./connections-view.js";
import { applicationLink } from "./directory.js";
import { html, nothing, type TemplateResult } from "./lit-html.js";
import { ApiError, createLoader } from "./loading.js";
import { visibleText } from "./text.js";
import { busyNotice, dataTable, navigate, problemNotice, type View, type ViewContext } from "./view.js";

/** Whatever one text may name. */
interface Found {
  readonly calls: readonly CallRecordJson[];
  readonly connections: readonly ConnectionJson[];
  readonly applications: readonly ApplicationJson[];
}

/** A UUID. */
const CALL_ID = /^[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}$/;
/** Of each kind; who finds more has to say more. */
const MAX_FOUND = 20;

/** What is found of a call id, a request id, a user's id, or an application's name or key. */
export function createFindView(context: ViewContext): View {
  const { api, directory, update } = context;
  const found = createLoader<Found>(update);
  /** Of the user whose id it is. Takes longer, and may fail alone. */
  const userCalls = createLoader<readonly CallRecordJson[]>(update);
  let text = "";

  async function load(): Promise<void> {
    await found.load(() => find(api, text));
    if (found.value === undefined) return;
    const { calls, connections, applications } = found.value;
    directory.note(applications);
    const [call] = calls;
    // One call and nothing else: that is what was meant.
    if (call?.callId === text && connections.length + applications.length === 0) location.replace(callAddress(text));
    else await userCalls.load(() => callsOf(api, text, connections));
  }

  function clear(): void {
    found.clear();
    userCalls.clear();
  }

  return {
    title: "Find",
    enter(parameters) {
      text = parameters.get("text") ?? "";
      clear();
      if (text !== "") void load();
    },
    leave: clear,
    render: () => html`<h1 tabindex="-1">Find</h1>
      <p>Looked for <span class="id">${visibleText(text)}</span> among call ids, request ids, user ids and applications.</p>
      ${problemNotice({ problem: found.problem ?? userCalls.problem })} ${busyNotice({ isBusy: found.isBusy || userCalls.isBusy })}
      ${found.value === undefined ? nothing : foundView(context, found.value, userCalls.value, text)}`,
  };
}

async function find(api: Api, text: string): Promise<Found> {
  const [call, ofRequest, ofUser, named] = await Promise.all([
    CALL_ID.test(text) ? api.call("CallRecordService/GetCallRecord", { callId: text }).catch(noneFrom) : undefined,
    api.call("CallRecordService/ListCallRecords", { requestId: text, pageSize: MAX_FOUND }),
    api.call("ConnectionService/ListConnections", { userId: text, pageSize: MAX_FOUND }),
    api.call("ApplicationService/ListApplications", { query: text, pageSize: MAX_FOUND }),
  ]);
  return {
    calls: [...(call === undefined ? [] : [call]), ...(ofRequest.callRecords ?? [])],
    connections: ofUser.connections ?? [],
    applications: named.applications ?? [],
  };
}

/** Calls are found by user and application alone: of so many applications they are looked for. */
const MAX_ASKED = 20;

/** The newest calls of a user, who need not be connected: first where they are. Rejects with ApiError. */
async function callsOf(api: Api, userId: string, connections: readonly ConnectionJson[]) {
  const { applications = [] } = await api.call("ApplicationService/ListApplications", { pageSize: MAX_ASKED });
  const keys = new Set([...connections, ...applications].map(({ publicKey = "" }) => publicKey));
  const records: CallRecordJson[] = [];
  // One after another: each may look through many records.
  for (const publicKey of [...keys].slice(0, MAX_ASKED)) {
    const request = { publicKey, userId, pageSize: MAX_FOUND };
    // An application may be deleted meanwhile.
    const page = await api.call("CallRecordService/ListCallRecords", request).catch(noneFrom);
    records.push(...(page?.callRecords ?? []));
  }
  return records
    .sort(({ startTime: one = "" }, { startTime: other = "" }) => Date.parse(other) - Date.parse(one))
    .slice(0, MAX_FOUND);
}

function noneFrom(error: unknown): undefined {
  if (error instanceof ApiError && error.code === "not_found") return undefined;
  throw error;
}

function foundView(
  context: ViewContext,
  { calls, connections, applications }: Found,
  userCalls: readonly CallRecordJson[] | undefined,
  text: string,
): TemplateResult {
  const section = (heading: string, content: TemplateResult) =>
    html`<section class="part"><h2>${heading}</h2>${content}</section>`;
  const isNothing = calls.length + connections.length + applications.length === 0 && userCalls?.length === 0;
  return html`${isNothing ? html`<p role="status">Nothing was found.</p>` : nothing}
    ${calls.length === 0 ? nothing : section("Calls", recordTable("Calls", calls))}
    ${!userCalls?.length ? nothing : section("Calls for this user", recordTable("Calls for this user", userCalls, text))}
    ${connections.length === 0 ? nothing : section("Connections of this user", dataTable("Connections", connectionColumns(context.directory), connections))}
    ${applications.length === 0 ? nothing : section("Applications", html`<ul>${applications.map(({ publicKey = "" }) => html`<li>${applicationLink(context.directory, publicKey)}</li>`)}</ul>`)}
    ${userCalls === undefined ? nothing : html`<p class="hint">Calls for a user are looked for in ${MAX_ASKED} applications, first in those where the user is connected: <a href="#/calls?${new URLSearchParams({ userId: text })}">choose another one</a>.</p>`}`;
}

/** The box that stands above every view. */
export function findBox(): TemplateResult {
  const submit = (event: SubmitEvent) => {
    event.preventDefault();
    const input = (event.currentTarget as HTMLFormElement).querySelector("input");
    const text = input?.value.trim() ?? "";
    if (text === "") input?.focus();
    else navigate("find", { text });
  };
  return html`<form class="find" role="search" aria-label="Everything" @submit=${submit}>
    <label class="unseen" for="find">Find a call, a request, a user or an application</label>
    <input id="find" placeholder="Find an id or a name" autocomplete="off" spellcheck="false" />
    <button type="submit">Find</button>
  </form>`;
}
