import { createHash } from "node:crypto";
import { setImmediate as nextTurn } from "node:timers/promises";
import { create, type DescMessage, isFieldSet, type MessageShape } from "@bufbuild/protobuf";
import { type Duration, DurationSchema, type FieldMask, type Timestamp, timestampMs } from "@bufbuild/protobuf/wkt";
import { Code, ConnectError, type HandlerContext } from "@connectrpc/connect";
import { ErrorDetailSchema } from "../../gen/relay/admin/v1/error_pb.js";
import type { RelayServiceOptions } from "../api/rpc/relay-service.js";
import type { Application, ApplicationStore } from "../applications/application.js";
import { MAX_ID_LENGTH } from "../applications/caller.js";
import type { Call } from "../call/call.js";
import type { Explanation } from "../call/explanation.js";
import type { HttpRequest } from "../http/exchange.js";
import { parseJson } from "../lib/parse-json.js";
import type { Pending } from "../lib/process.js";
import type { ChangeOptions, SessionStore } from "../model/audit.js";
import type { Inspect } from "../model/findings.js";
import type { ConnectLinkOptions } from "../oauth/connect-session.js";
import type { DisconnectOptions } from "../oauth/disconnect.js";
import type { Refresher } from "../oauth/refresher.js";
import { isProviderName, PROVIDER_NAME_HINT, type Provider, type ProviderCatalog } from "../providers/provider.js";
import type { CallStore } from "../records/call-block.js";
import type { CaptureStore } from "../records/capture-store.js";
import type { FigureStore } from "../records/figures.js";
import type { Sealer } from "../sealing/seal.js";
import type { AdministeredStore, Administration, AuditStamp } from "./administration.js";
import { operatorContextKey } from "./admit.js";

/** NOT_FOUND for what a request names. */
export function notFound(what: string): ConnectError {
  return new ConnectError(`There is no ${what}.`, Code.NotFound);
}

/** Reads a required id or key of 1 to 256 characters. */
export function requiredId(value: string, field: string): string {
  if (value.length > MAX_ID_LENGTH) throw invalidArgument(field, `is longer than ${MAX_ID_LENGTH} characters`);
  return required(value, field);
}

/** The application that a request names. @param field the request field with its public key. */
export async function namedApplication(
  applications: Pick<ApplicationStore, "findByPublicKey">,
  publicKey: string,
  field = "public_key",
): Promise<Application> {
  const application = await applications.findByPublicKey(requiredId(publicKey, field));
  if (application === undefined) throw noApplication();
  return application;
}

export function noApplication(): ConnectError {
  return notFound("application with this public key");
}

/** The provider that a request names, by name or alias. */
export function namedProvider(catalog: ProviderCatalog, name: string, field = "provider_name"): Provider {
  const provider = catalog.find(required(name, field));
  if (provider === undefined) throw notFound("provider with this name");
  return provider;
}

/**
 * The name of the provider that a request names. A provider that is no longer in the catalogue is accepted as written,
 * so that its stored rows can still be seen and deleted.
 */
export function providerNameFrom(catalog: ProviderCatalog, name: string): string {
  const provider = catalog.find(name);
  if (provider !== undefined) return provider.name;
  if (isProviderName(required(name, "provider_name"))) return name;
  throw invalidArgument("provider_name", PROVIDER_NAME_HINT);
}

/**
 * Names of the fields that an update writes (AIP-134): those in the mask; all writable ones for `*`; without a mask,
 * those that are not empty in the message.
 *
 * @param writable names of the writable fields in the schema.
 */
export function maskedFields<Desc extends DescMessage, Field extends string>(
  schema: Desc,
  message: MessageShape<Desc>,
  mask: FieldMask | undefined,
  writable: readonly Field[],
): readonly Field[] {
  const paths = mask?.paths ?? [];
  if (paths.length === 1 && paths[0] === "*") return writable;
  const named = paths.length === 0 ? writable.filter((field) => isSet(schema, message, field)) : paths;
  const unknown = named.find((path) => !writable.some((field) => field === path));
  if (unknown !== undefined)
    throw invalidArgument("update_mask", `may contain only ${writable.join(", ")}, or a single *`);
  if (named.length === 0) throw invalidArgument("update_mask", "names no field, and no field is set");
  return writable.filter((field) => named.some((path) => path === field));
}

function isSet<Desc extends DescMessage>(schema: Desc, message: MessageShape<Desc>, name: string): boolean {
  const field = schema.fields.find((each) => each.name === name);
  return field !== undefined && isFieldSet(message, field);
}

/** An etag of a resource's values (AIP-154), or of the fields of a request that its page token belongs to. */
export function etagFrom(values: readonly unknown[]): string {
  return createHash("sha256").update(JSON.stringify(values)).digest("base64url").slice(0, 16);
}

/** A predicate that compares a row with the request's etag; undefined when the request has none. */
export function isCurrentFrom<Row>(etag: string, etagOf: (row: Row) => string): ChangeOptions<Row>["isCurrent"] {
  return etag === "" ? undefined : (row) => etagOf(row) === etag;
}

const DEFAULT_SIZE = 100;
/** A larger page would block the event loop, which also serves calls, for over ten milliseconds. */
const MAX_SIZE = 500;

/** An id, key or name that the relay defines: printable ASCII. */
export const NAME_PART: RegExp = /^[\x21-\x7e]{1,256}$/;
/** A user's id: any text. */
export const USER_PART: RegExp = /^.{1,256}$/s;
/** A whole number. */
export const NUMBER_PART: RegExp = /^\d{1,16}$/;

/** The requested page (AIP-158). */
interface Page {
  readonly size: number;
  /** Key of the last row of the previous page; undefined for the first page. */
  readonly after: readonly string[] | undefined;
  /** The token of the page that starts after this key. */
  tokenAfter(key: readonly string[]): string;
}

/** The paging fields of a request. */
interface PageRequest {
  readonly pageSize: number;
  readonly pageToken: string;
}

/**
 * Reads which page is requested. A page token contains the key of a row and a digest of the request's other fields,
 * which must stay the same. It is not secret and grants nothing. Anybody can forge one, so it is validated like any
 * other input.
 *
 * @param filter the other fields of the request that determine the result.
 * @param parts a pattern for each part of a key.
 */
export function pageFrom(
  { pageSize, pageToken }: PageRequest,
  filter: readonly unknown[],
  parts: readonly RegExp[],
): Page {
  if (pageSize < 0) throw invalidArgument("page_size", "must not be negative");
  const digest = etagFrom(filter);
  const after = pageToken === "" ? undefined : keyFrom(pageToken, digest, parts);
  return {
    size: Math.min(pageSize || DEFAULT_SIZE, MAX_SIZE),
    after,
    tokenAfter: (key) => Buffer.from(JSON.stringify([digest, ...key])).toString("base64url"),
  };
}

/** One page of rows that are all in memory, sorted by a key with one part. */
export function pageOf<Row>(
  { size, after, tokenAfter }: Page,
  sorted: readonly Row[],
  keyOf: (row: Row) => string,
): { readonly rows: readonly Row[]; readonly nextPageToken: string } {
  const [last] = after ?? [];
  const rest = last === undefined ? sorted : sorted.filter((row) => keyOf(row) > last);
  return pageOfRest({ size, tokenAfter }, rest, (row) => [keyOf(row)]);
}

/** One page from rows that start after the previous page. One row beyond the page size means that there are more. */
export function pageOfRest<Row>(
  { size, tokenAfter }: Pick<Page, "size" | "tokenAfter">,
  rest: readonly Row[],
  keyOf: (row: Row) => readonly string[],
): { readonly rows: readonly Row[]; readonly nextPageToken: string } {
  const rows = rest.slice(0, size);
  const last = rows.at(-1);
  return { rows, nextPageToken: last !== undefined && rest.length > size ? tokenAfter(keyOf(last)) : "" };
}

/** Rows read at a time: a few milliseconds of the event loop. */
const SCAN_ROWS = 200;

/** What {@link pageOfScan} reads. */
interface Scan<Row> {
  /** Reads rows in the order of their keys. */
  readonly read: (after: readonly string[] | undefined, limit: number) => Promise<readonly Row[]>;
  /** Filters rows for which there is no index; undefined when every row matches. */
  readonly isWanted: ((row: Row) => boolean) | undefined;
  readonly keyOf: (row: Row) => readonly string[];
  /** Rows scanned for one page. The page then ends with what was found, and its token continues from there (AIP-158). */
  readonly maxRows: number;
}

/** One page of rows that are scanned by key, so that the last page costs no more than the first. Yields to the event loop. */
export async function pageOfScan<Row>(
  page: Page,
  { read, isWanted, keyOf, maxRows }: Scan<Row>,
): Promise<{ readonly rows: readonly Row[]; readonly nextPageToken: string }> {
  const rows: Row[] = [];
  let { after } = page;
  for (let scanned = 0; scanned < maxRows; scanned += SCAN_ROWS) {
    const limit = isWanted === undefined ? Math.min(page.size + 1 - rows.length, SCAN_ROWS) : SCAN_ROWS;
    const found = await read(after, limit);
    rows.push(...(isWanted === undefined ? found : found.filter(isWanted)));
    if (rows.length > page.size || found.length < limit) return pageOfRest(page, rows, keyOf);
    after = keyOf(found.at(-1) as Row);
    await nextTurn();
  }
  return { rows, nextPageToken: page.tokenAfter(after ?? []) };
}

function keyFrom(token: string, digest: string, parts: readonly RegExp[]): readonly string[] {
  const [ofRequest, ...key] = textsFrom(token);
  const isKey = key.length === parts.length && parts.every((part, at) => part.test(key[at] ?? ""));
  if (ofRequest === digest && isKey) return key;
  throw invalidArgument(
    "page_token",
    "does not belong to a request with these fields; start again from the first page",
  );
}

function textsFrom(token: string): readonly string[] {
  const value = parseJson(Buffer.from(token, "base64url").toString());
  return Array.isArray(value) && value.every((each) => typeof each === "string") ? value : [];
}

/**
 * INVALID_ARGUMENT for a field.
 *
 * @param field its path, such as `application.display_name`.
 * @param problem follows the path in a sentence.
 */
export function invalidArgument(field: string, problem: string): ConnectError {
  return invalidField(field, `${field} ${problem}.`);
}

/** The same with a message of the caller's. */
export function invalidField(field: string, message: string): ConnectError {
  const detail = { desc: ErrorDetailSchema, value: { field } };
  return new ConnectError(message, Code.InvalidArgument, undefined, [detail]);
}

/** Throws when a text is empty or a message is missing. */
export function required<Value>(value: Value | undefined, field: string): Value {
  if (value === undefined || value === "") throw invalidArgument(field, "is missing");
  return value;
}

/** The bounds of google.protobuf.Timestamp: the years 1 to 9999. */
const [MIN_TIME_MS, MAX_TIME_MS] = [Date.parse("0001-01-01T00:00:00Z"), Date.parse("9999-12-31T23:59:59.999Z")];

/** A time of a request in milliseconds since the epoch; undefined without one. Its binary form may hold any number. */
export function timeFrom(time: Timestamp | undefined, field: string): number | undefined {
  const ms = time && timestampMs(time);
  if (ms === undefined || (ms >= MIN_TIME_MS && ms <= MAX_TIME_MS)) return ms;
  throw invalidArgument(field, "must be a time of the years 1 to 9999");
}

export function durationFromMs(ms: number): Duration {
  const seconds = Math.floor(ms / 1000);
  return create(DurationSchema, { seconds: BigInt(seconds), nanos: Math.round((ms - seconds * 1000) * 1e6) });
}

/** Free and total space of a disk. */
export interface DiskRoom {
  readonly freeBytes: number;
  readonly totalBytes: number;
}

/** Dependencies of the administration port's services. Everything is a value or an interface. */
export interface AdminOptions {
  readonly store: AdministeredStore & {
    readonly calls: CallStore;
    readonly captures: CaptureStore;
    readonly sessions: SessionStore;
    readonly figures: FigureStore;
    readonly inspect: Inspect;
  };
  /** Problems that the store checks found, as sentences. */
  readonly problems: () => Iterable<string>;
  /** Space on the database's disk; undefined when the database is not on this machine. */
  readonly diskRoom: () => Promise<DiskRoom | undefined>;
  readonly sealer: Sealer;
  readonly catalog: ProviderCatalog;
  /** Files with the operator's own definitions, by provider name. */
  readonly providerFiles: ReadonlyMap<string, string>;
  /** How connections are disconnected, and the pending disconnections that shutdown waits for. */
  readonly disconnection: DisconnectOptions & { readonly pending: Pending };
  /** Refreshes a token on an operator's request. */
  readonly refresher: Pick<Refresher, "refresh">;
  /** Options for connect links. */
  readonly connecting: ConnectLinkOptions;
  /** Resolves when the service begins to stop, or when the signal aborts. */
  readonly stopped: (signal: AbortSignal) => Promise<void>;
  /** Whether webhooks may go to this machine. */
  readonly allowLoopback: boolean;
  readonly clientAddress: (request: HttpRequest) => string;
  /** Origin at which callers reach the relay; undefined when it is not known. */
  readonly publicUrl: () => string | undefined;
  readonly calls: RelayServiceOptions & {
    /** See `explainCall()`. */
    readonly explain: (read: () => Call) => Promise<Explanation>;
  };
  /** Milliseconds since the epoch. */
  readonly now: () => number;
  readonly newAuditStamp: () => AuditStamp;
  readonly onFault: (where: string, error: unknown) => void;
}

/** The {@link Administration} for the operator who sent a request. */
export function administrationFor(
  { store, sealer, now, newAuditStamp }: AdminOptions,
  { values }: Pick<HandlerContext, "values">,
): Administration {
  return { actor: values.get(operatorContextKey)?.name ?? "", store, sealer, now, newAuditStamp };
}
