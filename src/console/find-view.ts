import type { ApplicationJson } from "../../gen/relay/admin/v1/application_pb.js";
import type { CallRecordJson } from "../../gen/relay/admin/v1/call_record_pb.js";
import type { ConnectionJson } from "../../gen/relay/admin/v1/connection_pb.js";
import type { Api } from "./api.js";
import { recordTable } from "./call-tables.js";
import { connectionColumns } from "./connections-view.js";
import { applicationLink } from "./directory.js";
import { html, nothing, type TemplateResult } from "./lit-html.js";
import { createLoader, type Loader, type Loading, undefinedIfMissing } from "./loading.js";
import { addressOf, visibleText } from "./text.js";
import { dataTable, navigate, problemNotice, type View, type ViewContext } from "./view.js";

const CALL_ID = /^[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}$/;
/** Results of each kind; anyone who gets this many should search more specifically. */
const MAX_FOUND = 20;

/** One of the searches for a text. Each shows its results as they arrive, and fails on its own. */
interface Question<Row> {
  /** What is searched, in words. */
  readonly among: string;
  readonly found: Loader<readonly Row[]>;
  render(): TemplateResult | typeof nothing;
}

/** Search results for a call id, a request id, a user id, or an application's name or key. */
export function createFindView(context: ViewContext): View {
  const { api, directory, update } = context;
  let text = "";

  function question<Row>(
    among: string,
    heading: string,
    list: (rows: readonly Row[]) => TemplateResult,
  ): Question<Row> {
    const found = createLoader<readonly Row[]>(update);
    return { among, found, render: () => sectionOf(heading, found, list) };
  }

  const call = question("call ids", "Call", (rows: readonly CallRecordJson[]) => recordTable("Call", rows));
  const ofRequest = question("request ids", "Calls", (rows: readonly CallRecordJson[]) => recordTable("Calls", rows));
  const ofUser = question("the calls of users", "Calls for this user", (rows: readonly CallRecordJson[]) =>
    recordTable("Calls for this user", rows, text),
  );
  const connections = question("user ids", "Connections of this user", (rows: readonly ConnectionJson[]) =>
    dataTable("Connections", connectionColumns(directory), rows),
  );
  const applications = question("applications", "Applications", (rows: readonly ApplicationJson[]) => listOf(rows));
  const questions = [call, ofRequest, ofUser, connections, applications];

  function listOf(rows: readonly ApplicationJson[]): TemplateResult {
    return html`<ul>${rows.map(({ publicKey = "" }) => html`<li>${applicationLink(directory, publicKey)}</li>`)}</ul>`;
  }

  async function load(): Promise<void> {
    const asked = text;
    const connected = connections.found.load(
      async () =>
        (await api.call("ConnectionService/ListConnections", { userId: asked, pageSize: MAX_FOUND })).connections ?? [],
    );
    void loadCallsOfUser(connected);
    await Promise.all([
      connected,
      call.found.load(async () => (CALL_ID.test(text) ? recordOf(api, text) : [])),
      ofRequest.found.load(async () => {
        const request = { requestId: text, pageSize: MAX_FOUND };
        return (await api.call("CallRecordService/ListCallRecords", request)).callRecords ?? [];
      }),
      applications.found.load(async () => {
        const request = { query: text, pageSize: MAX_FOUND };
        const { applications: named = [] } = await api.call("ApplicationService/ListApplications", request);
        directory.note(named);
        return named;
      }),
    ]);
    // If a call is the only result, open it. Calls of a user are not waited for: that search takes longer.
    const others: ReadonlyArray<Loading<readonly unknown[]>> = [ofRequest.found, connections.found, applications.found];
    const isAlone = [call.found, ...others].every(({ problem }) => problem === undefined) && others.every(isEmpty);
    if (asked === text && isAlone && !isEmpty(call.found)) location.replace(addressOf("call", { callId: text }));
  }

  /** Searches the user's applications first, then others; also when the user's connections could not be loaded. */
  async function loadCallsOfUser(connected: Promise<unknown>): Promise<void> {
    const asked = text;
    await connected;
    if (asked === text)
      await ofUser.found.load((isWanted) => callsOf(api, asked, connections.found.value ?? [], isWanted));
  }

  return {
    title: "Find",
    enter(parameters) {
      text = parameters.get("text") ?? "";
      if (text !== "") void load();
    },
    leave() {
      text = "";
      for (const { found } of questions) found.clear();
    },
    render: () => html`<h1 tabindex="-1">Find</h1>
      <p>Searched for <span class="id">${visibleText(text)}</span> in call ids, request ids, user ids and applications.</p>
      ${questions.map((each) => each.render())}
      <p class="hint" role="status">${statusOf(questions)}</p>
      ${ofUser.found.value === undefined ? nothing : html`<p class="hint">A user's calls are searched in up to ${MAX_ASKED} applications, first those where the user is connected: <a href=${addressOf("calls", { userId: text })}>choose another application</a>.</p>`}`,
  };
}

function isEmpty({ value }: Loading<readonly unknown[]>): boolean {
  return value === undefined || value.length === 0;
}

/** Nothing until there are results or an error. */
function sectionOf<Row>(
  heading: string,
  { value = [], problem }: Loading<readonly Row[]>,
  list: (rows: readonly Row[]) => TemplateResult,
): TemplateResult | typeof nothing {
  if (value.length === 0 && problem === undefined) return nothing;
  return html`<section class="part">
    <h2>${heading}</h2>
    ${problemNotice({ problem })} ${value.length === 0 ? nothing : list(value)}
  </section>`;
}

function statusOf(questions: ReadonlyArray<Pick<Question<unknown>, "among" | "found">>): string {
  const open = questions.filter(({ found }) => found.isBusy).map(({ among }) => among);
  if (open.length > 0) return `Searching ${open.join(", ")}…`;
  const isNothing = questions.every(({ found }) => found.problem === undefined && found.value?.length === 0);
  return isNothing ? "Nothing found." : "";
}

async function recordOf(api: Api, callId: string): Promise<readonly CallRecordJson[]> {
  const record = await api.call("CallRecordService/GetCallRecord", { callId }).catch(undefinedIfMissing);
  return record === undefined ? [] : [record];
}

/** The API finds a user's calls only within one application; this many applications are searched. */
const MAX_ASKED = 20;

/** A user's newest calls, connected or not; searches applications with a connection first. Rejects with ApiError. */
async function callsOf(
  api: Api,
  userId: string,
  connections: readonly ConnectionJson[],
  isWanted: () => boolean,
): Promise<readonly CallRecordJson[]> {
  const { applications = [] } = await api.call("ApplicationService/ListApplications", { pageSize: MAX_ASKED });
  const keys = new Set([...connections, ...applications].map(({ publicKey = "" }) => publicKey));
  const records: CallRecordJson[] = [];
  // One after another, since each search may scan many records.
  for (const publicKey of [...keys].slice(0, MAX_ASKED)) {
    if (!isWanted()) break;
    const request = { publicKey, userId, pageSize: MAX_FOUND };
    // The application may have been deleted in the meantime.
    const page = await api.call("CallRecordService/ListCallRecords", request).catch(undefinedIfMissing);
    records.push(...(page?.callRecords ?? []));
  }
  return records
    .sort(({ startTime: one = "" }, { startTime: other = "" }) => Date.parse(other) - Date.parse(one))
    .slice(0, MAX_FOUND);
}

/** The search box above every view. */
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
