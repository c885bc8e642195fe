import { createHash } from "node:crypto";
import { create, type DescMessage, isFieldSet, type MessageShape } from "@bufbuild/protobuf";
import { type Duration, DurationSchema, type FieldMask } from "@bufbuild/protobuf/wkt";
import { Code, ConnectError, type HandlerContext } from "@connectrpc/connect";
import { ErrorDetailSchema } from "../../gen/relay/admin/v1/error_pb.js";
import type { Application, ApplicationStore } from "../applications/application.js";
import { MAX_ID_LENGTH } from "../applications/caller.js";
import type { Call } from "../call/call.js";
import type { Explanation } from "../call/explanation.js";
import type { Relay } from "../call/relay.js";
import type { HttpRequest } from "../http/exchange.js";
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

/** What a request says that there is none of. */
export function notFound(what: string): ConnectError {
  return new ConnectError(`There is no ${what}.`, Code.NotFound);
}

/** Reads an id or key that must be there: 1 to 256 characters. */
export function requiredId(value: string, field: string): string {
  if (value.length > MAX_ID_LENGTH) throw invalidArgument(field, `is longer than ${MAX_ID_LENGTH} characters`);
  return required(value, field);
}

/** The application that a request names. @param field where the request names it. */
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
  if (provider === undefined) throw notFound("provider of this name");
  return provider;
}

/**
 * The name of the provider that a request names. One that is no longer in the catalogue is taken as written, so that what
 * is stored for it can still be seen and deleted.
 */
export function providerNameFrom(catalog: ProviderCatalog, name: string): string {
  const provider = catalog.find(name);
  if (provider !== undefined) return provider.name;
  if (isProviderName(required(name, "provider_name"))) return name;
  throw invalidArgument("provider_name", PROVIDER_NAME_HINT);
}

/**
 * Names of the fields that an update writes (AIP-134): those that the mask has; all that can be written for `*`; without
 * a mask those that are not empty in the message.
 *
 * @param writable the fields that can be written, in the schema's spelling.
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
  if (unknown !== undefined) throw invalidArgument("update_mask", `may only have ${writable.join(", ")}, or * alone`);
  if (named.length === 0) throw invalidArgument("update_mask", "names no field, and no field is set");
  return writable.filter((field) => named.some((path) => path === field));
}

function isSet<Desc extends DescMessage>(schema: Desc, message: MessageShape<Desc>, name: string): boolean {
  const field = schema.fields.find((each) => each.name === name);
  return field !== undefined && isFieldSet(message, field);
}

/** An etag of what a resource says (AIP-154). */
export function etagFrom(values: readonly unknown[]): string {
  return createHash("sha256").update(JSON.stringify(values)).digest("base64url").slice(0, 16);
}

/** What judges a row by the etag that a request brings; undefined when it brings none. */
export function isCurrentFrom<Row>(etag: string, etagOf: (row: Row) => string): ChangeOptions<Row>["isCurrent"] {
  return etag === "" ? undefined : (row) => etagOf(row) === etag;
}

const DEFAULT_SIZE = 100;
/** More would hold the event loop, which serves calls as well, for over ten milliseconds. */
const MAX_SIZE = 500;

/** An id, a key or a name of ours: what the store can hold in a column of text. */
export const NAME_PART: RegExp = /^[\x21-\x7e]{1,256}$/;
/** A user's id: any text. */
export const USER_PART: RegExp = /^.{1,256}$/s;
/** A whole number. */
export const NUMBER_PART: RegExp = /^\d{1,16}$/;

/** Which page is asked for (AIP-158). */
interface Page {
  readonly size: number;
  /** Key of the last row of the page before; undefined for the first page. */
  readonly after: readonly string[] | undefined;
  /** The token of the page behind the row of this key. */
  tokenAfter(key: readonly string[]): string;
}

/** The part of a request that asks for a page. */
interface PageRequest {
  readonly pageSize: number;
  readonly pageToken: string;
}

/**
 * Reads which page is asked for. A token is the key of a row and a digest of the request's other fields, which must stay
 * as they were; it is no secret and grants nothing, and anybody can make one: it is read like any other input.
 *
 * @param filter the request's other fields that count.
 * @param parts what each text of a key must be like.
 */
export function pageFrom(
  { pageSize, pageToken }: PageRequest,
  filter: readonly unknown[],
  parts: readonly RegExp[],
): Page {
  if (pageSize < 0) throw invalidArgument("page_size", "must not be negative");
  const digest = digestOf(filter);
  const after = pageToken === "" ? undefined : keyFrom(pageToken, digest, parts);
  return {
    size: Math.min(pageSize || DEFAULT_SIZE, MAX_SIZE),
    after,
    tokenAfter: (key) => Buffer.from(JSON.stringify([digest, ...key])).toString("base64url"),
  };
}

/** One page of rows that are all at hand, sorted by a key of one text. */
export function pageOf<Row>(
  { size, after, tokenAfter }: Page,
  sorted: readonly Row[],
  keyOf: (row: Row) => string,
): { readonly rows: readonly Row[]; readonly nextPageToken: string } {
  const [last] = after ?? [];
  const rest = last === undefined ? sorted : sorted.filter((row) => keyOf(row) > last);
  return pageOfRest({ size, tokenAfter }, rest, (row) => [keyOf(row)]);
}

/** One page of rows that begin behind the page before. One row more than the page has tells that there are more. */
export function pageOfRest<Row>(
  { size, tokenAfter }: Pick<Page, "size" | "tokenAfter">,
  rest: readonly Row[],
  keyOf: (row: Row) => readonly string[],
): { readonly rows: readonly Row[]; readonly nextPageToken: string } {
  const rows = rest.slice(0, size);
  const last = rows.at(-1);
  return { rows, nextPageToken: last !== undefined && rest.length > size ? tokenAfter(keyOf(last)) : "" };
}

function keyFrom(token: string, digest: string, parts: readonly RegExp[]): readonly string[] {
  const [ofRequest, ...key] = textsFrom(token);
  const isKey = key.length === parts.length && parts.every((part, at) => part.test(key[at] ?? ""));
  if (ofRequest === digest && isKey) return key;
  throw invalidArgument("page_token", "is not one of a request with these fields; begin with the first page");
}

function textsFrom(token: string): readonly string[] {
  try {
    const value: unknown = JSON.parse(Buffer.from(token, "base64url").toString());
    return Array.isArray(value) && value.every((each) => typeof each === "string") ? value : [];
  } catch {
    // No token of ours, which the caller is told.
    return [];
  }
}

function digestOf(filter: readonly unknown[]): string {
  return createHash("sha256").update(JSON.stringify(filter)).digest("base64url").slice(0, 8);
}

/**
 * The refusal of a request with a wrong field.
 *
 * @param field its path, such as `application.display_name`.
 * @param problem what follows the path in a sentence.
 */
export function invalidArgument(field: string, problem: string): ConnectError {
  return invalidField(field, `${field} ${problem}.`);
}

/** The same with a message of its own. */
export function invalidField(field: string, message: string): ConnectError {
  const detail = { desc: ErrorDetailSchema, value: { field } };
  return new ConnectError(message, Code.InvalidArgument, undefined, [detail]);
}

/** A text that must be there. */
export function required(value: string, field: string): string {
  if (value === "") throw invalidArgument(field, "is missing");
  return value;
}

/** A message that must be there. */
export function requiredMessage<Message>(value: Message | undefined, field: string): Message {
  if (value === undefined) throw invalidArgument(field, "is missing");
  return value;
}

/** A length of time, from milliseconds. */
export function durationFromMs(ms: number): Duration {
  const seconds = Math.floor(ms / 1000);
  return create(DurationSchema, { seconds: BigInt(seconds), nanos: Math.round((ms - seconds * 1000) * 1e6) });
}

/** Finds the public key of an application by its id; undefined when there is none any more. */
export type PublicKeyOf = (id: string) => Promise<string | undefined>;

/** An application never gets another key, so each is asked for once; the oldest make room. */
const MAX_KEPT = 10_000;

/** Keeps the public keys that were asked for. */
export function createPublicKeys(applications: Pick<ApplicationStore, "publicKeyOf">): PublicKeyOf {
  const kept = new Map<string, string>();
  return async (id) => {
    const known = kept.get(id);
    if (known !== undefined) return known;
    const publicKey = await applications.publicKeyOf(id);
    if (publicKey === undefined) return undefined;
    kept.set(id, publicKey);
    const [oldest] = kept.keys();
    if (kept.size > MAX_KEPT && oldest !== undefined) kept.delete(oldest);
    return publicKey;
  };
}

/** What explaining and performing calls needs from the rest of the service. */
export interface CallServiceOptions {
  readonly relay: Relay;
  /** See `explainCall()`. */
  readonly explain: (read: () => Call) => Promise<Explanation>;
  readonly deadlineMs: number;
}

/** Of a disk. */
export interface DiskRoom {
  readonly freeBytes: number;
  readonly totalBytes: number;
}

/** What the services of the administration port work on; everything is a value or an interface. */
export interface AdminOptions {
  readonly store: AdministeredStore & {
    readonly calls: CallStore;
    readonly captures: CaptureStore;
    readonly sessions: SessionStore;
    readonly figures: FigureStore;
    readonly inspect: Inspect;
  };
  /** What looks at the store found wrong, for people. */
  readonly problems: () => Iterable<string>;
  /** The room that is left where the database is; undefined where that is not on this machine. */
  readonly diskRoom: () => Promise<DiskRoom | undefined>;
  readonly sealer: Sealer;
  readonly catalog: ProviderCatalog;
  /** Files of the operator's own definitions, by provider name. */
  readonly providerFiles: ReadonlyMap<string, string>;
  /** How connections are ended, and what waits for it when the service stops. */
  readonly disconnection: DisconnectOptions & { readonly pending: Pending };
  /** Refreshes a token when an operator asks for it. */
  readonly refresher: Pick<Refresher, "refresh">;
  /** What connect links are made with. */
  readonly connecting: ConnectLinkOptions;
  /** Resolves when the service begins to stop, or when the signal aborts. */
  readonly stopped: (signal: AbortSignal) => Promise<void>;
  /** Webhooks may go to this machine. */
  readonly allowLoopback: boolean;
  readonly clientAddress: (request: HttpRequest) => string;
  /** Origin at which callers reach the relay; undefined when it is not known. */
  readonly publicUrl: () => string | undefined;
  readonly calls: CallServiceOptions;
  /** Milliseconds since the epoch. */
  readonly now: () => number;
  readonly newAuditStamp: () => AuditStamp;
  readonly onFault: (where: string, error: unknown) => void;
}

/** What a request's operator changes things with. */
export function administrationFor(
  { store, sealer, now, newAuditStamp }: AdminOptions,
  { values }: Pick<HandlerContext, "values">,
): Administration {
  return { actor: values.get(operatorContextKey)?.name ?? "", store, sealer, now, newAuditStamp };
}
