import { setImmediate as nextTurn } from "node:timers/promises";
import { type ListConnectionsRequest, Connection_State as State } from "../../gen/relay/admin/v1/connection_pb.js";
import type { ConnectionKey, ConnectionRange, ConnectionSummary } from "../tokens/connection.js";
import { shownStateOf } from "./connection-message.js";
import { invalidArgument } from "./invalid-argument.js";
import { namedApplication, providerNameFrom } from "./named.js";
import type { AdminOptions } from "./options.js";
import { NAME_PART, pageFrom, pageOfRest, USER_PART } from "./page.js";

/** Rows that are read at a time: a few milliseconds of the event loop. */
const SCAN_ROWS = 200;
/** Rows that are looked at for one page; what is found by then is the page, and its token goes on from there. */
const MAX_SCANNED_ROWS = 50_000;
/** Application, user, provider. */
const KEY_PARTS = [NAME_PART, USER_PART, NAME_PART];

/** One page of connections. */
interface ConnectionPage {
  readonly rows: readonly ConnectionSummary[];
  readonly nextPageToken: string;
}

/** Which of the rows are wanted. */
type Wanted = (connection: ConnectionSummary) => boolean;

/**
 * Lists connections by key. Provider and state have no index of their own: rows are looked through, the calls of others
 * served in between, and a page ends early rather than taking long (AIP-158).
 */
export async function listConnections(options: AdminOptions, request: ListConnectionsRequest): Promise<ConnectionPage> {
  const { publicKey, userId, userIdPrefix, providerName, state } = request;
  const page = pageFrom(request, [publicKey, userId, userIdPrefix, providerName, state], KEY_PARTS);
  const applicationId = await applicationIdFrom(options, request);
  const wanted = wantedFrom(options, request);
  const range = { applicationId, user: userId === "" ? { prefix: userIdPrefix } : { id: userId } };
  const rows: ConnectionSummary[] = [];
  let after = keyFrom(page.after);
  for (let scanned = 0; scanned < MAX_SCANNED_ROWS; scanned += SCAN_ROWS) {
    const limit = wanted === undefined ? Math.min(page.size + 1 - rows.length, SCAN_ROWS) : SCAN_ROWS;
    const read = await options.store.connections.scan({ ...range, after, limit } satisfies ConnectionRange);
    rows.push(...(wanted === undefined ? read : read.filter(wanted)));
    if (rows.length > page.size || read.length < limit) return pageOfRest(page, rows, textsOf);
    after = read.at(-1);
    await nextTurn();
  }
  return { rows, nextPageToken: after === undefined ? "" : page.tokenAfter(textsOf(after)) };
}

async function applicationIdFrom(
  { store }: AdminOptions,
  { publicKey, userId, userIdPrefix }: ListConnectionsRequest,
): Promise<string | undefined> {
  if (userId !== "" && userIdPrefix !== "") throw invalidArgument("user_id_prefix", "goes without user_id");
  if (publicKey !== "") return (await namedApplication(store.applications, publicKey)).id;
  if (userId !== "" || userIdPrefix !== "")
    throw invalidArgument("public_key", "is missing: users are an application's");
  return undefined;
}

/** Undefined where every row is. */
function wantedFrom(
  { catalog, now }: AdminOptions,
  { providerName, state }: ListConnectionsRequest,
): Wanted | undefined {
  if (providerName === "" && state === State.UNSPECIFIED) return undefined;
  const name = providerName === "" ? undefined : providerNameFrom(catalog, providerName);
  const at = now();
  return (connection) =>
    (name === undefined || connection.providerName === name) &&
    (state === State.UNSPECIFIED || State[shownStateOf(connection, at).state] === state);
}

function keyFrom(texts: readonly string[] | undefined): ConnectionKey | undefined {
  if (texts === undefined) return undefined;
  const [applicationId = "", userId = "", providerName = ""] = texts;
  return { applicationId, userId, providerName };
}

function textsOf({ applicationId, userId, providerName }: ConnectionKey): readonly string[] {
  return [applicationId, userId, providerName];
}
