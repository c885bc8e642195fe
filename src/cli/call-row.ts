import { STATUS_CODES } from "node:http";
import type { ResultRow } from "../../gen/relay/v1/relay_pb.js";
import { validateJson } from "../json/json-validator.js";
import { isTerminal, printable, printableLines, usageError, writeLine, writeNote, writeOutput } from "./command.js";

/** Protocols of the public port. */
export const PROTOCOLS = ["connect", "grpc", "grpc-web", "rest"] as const;

/** One of {@link PROTOCOLS}. */
export type Protocol = (typeof PROTOCOLS)[number];

/** Where and how a call goes to the relay. */
export interface CallTarget {
  /** `http://host:port`, without a slash at the end. */
  readonly relayUrl: string;
  readonly privateKey: string | undefined;
  /** The provider's body as mapped `data`, for people and programs, or as its exact bytes. */
  readonly responseMode: "data" | "body";
}

/** The one row of the envelope. */
export interface CallRow {
  readonly row: ResultRow;
  /** ProtoJSON; over REST exactly as the relay wrote it. */
  readonly json: string;
}

/** A call ends by the relay's own deadline, 120 s at most; this is for a relay that hangs. In milliseconds. */
export const CALL_TIMEOUT_MS = 130_000;

/** Largest answer that is read: far over the relay's default limit, far below what memory and strings hold. */
export const MAX_ANSWER_BYTES = 256 * 1024 * 1024;

/** Text for a relay that cannot be reached, or with which no trusted connection can be made. */
export function unreachable(relayUrl: string, code: string): string {
  if (code === "ERR_TLS_CERT_ALTNAME_INVALID") {
    return `The certificate of ${relayUrl} is for another name (${code}). Name the relay with --relay as its certificate does.`;
  }
  if (code === "CERT_HAS_EXPIRED" || code === "CERT_NOT_YET_VALID") {
    return `The certificate of ${relayUrl} is not valid at this time (${code}). Replace it, or set the clock.`;
  }
  if (/CERT|^UNABLE_TO_|^INVALID_(?:CA|PURPOSE)$/.test(code)) {
    return `The certificate of ${relayUrl} is not trusted here (${code}). For a private one set NODE_EXTRA_CA_CERTS to a file with the certificate of whoever signed it, or with itself where nobody else did.`;
  }
  if (code === "EPROTO" || code.startsWith("ERR_SSL_") || code.startsWith("ERR_TLS_")) {
    return `${relayUrl} does not speak TLS as asked (${code}). Is it http rather than https? --relay names the address.`;
  }
  return `No relay answers at ${relayUrl} (${code}). Start it with 'relay serve', or name another one with --relay.`;
}

/** What `relay call` sends, whatever the protocol. */
export interface CallRequestText {
  readonly providerName: string;
  readonly publicKey: string;
  readonly userId: string;
  /** Hex HMAC of the user id; undefined for none. */
  readonly userSignature?: string | undefined;
  readonly url: string;
  readonly method: string;
  /** JSON text of an object. */
  readonly payload: string | undefined;
  /** Names and values in the order given; a name given again replaces the earlier value. */
  readonly headers: Readonly<Record<string, string>>;
}

/** As parsed from the command line; the payload has been read. */
interface CallArguments {
  readonly app: string;
  readonly user: string;
  readonly userSignature?: string;
  readonly request?: string;
  readonly header?: readonly string[];
}

/**
 * Reads the arguments of a call. As with other HTTP clients the method is GET, or POST when there is a payload.
 * Throws a usage error that names the argument; the relay judges the rest.
 */
export function parseCallArguments(
  providerName: string,
  url: string,
  options: CallArguments,
  payload: string | undefined,
): CallRequestText {
  return {
    providerName,
    publicKey: options.app,
    userId: options.user,
    userSignature: options.userSignature,
    url,
    method: options.request ?? (payload === undefined ? "GET" : "POST"),
    payload: payload === undefined ? undefined : parsePayload(payload),
    headers: Object.fromEntries((options.header ?? []).map(parseHeader)),
  };
}

/** The body of the JSON route; the payload's own text, so that no number is rounded on the way. */
export function jsonBodyFrom({ url, method, payload, headers }: CallRequestText): string {
  const members = [`"url":${JSON.stringify(url)}`, `"method":${JSON.stringify(method)}`];
  if (payload !== undefined) members.push(`"payload":${payload}`);
  if (Object.keys(headers).length > 0) members.push(`"headers":${JSON.stringify(headers)}`);
  return `{${members.join(",")}}`;
}

/** The ProtoJSON of relay.v1.CallRequest, for command lines of other tools. */
export function messageJsonFrom(call: CallRequestText): string {
  const { providerName, userId, publicKey, userSignature } = call;
  const names = JSON.stringify({ providerName, userId, publicKey, userSignature });
  return `${names.slice(0, -1)},"call":${jsonBodyFrom(call)}}`;
}

function parsePayload(text: string): string {
  const isObject = text.trimStart().startsWith("{") && validateJson(Buffer.from(text)) === "valid";
  if (!isObject) throw usageError('-d must be one JSON object, such as \'{"title":"hello"}\'.');
  return text;
}

function parseHeader(text: string): readonly [name: string, value: string] {
  const colon = text.indexOf(":");
  const name = text.slice(0, colon).trim();
  if (colon < 1 || name === "") throw usageError(`-H must be 'name: value', such as 'accept: text/plain'.`);
  return [name, text.slice(colon + 1).trim()];
}

/** How a row is printed. */
interface RowOutputOptions {
  /** Status line and headers on standard output, in front of the body. */
  readonly include: boolean;
}

/**
 * Prints the provider's answer as an HTTP client would: status line and headers on standard error, the body's own bytes
 * on standard output. JSON is indented for a person at a terminal. Nothing when no provider answered.
 */
export function writeAnswer(row: ResultRow, { include }: RowOutputOptions): void {
  if (row.body === undefined) return;
  const write = include ? writeLine : writeNote;
  write(`HTTP ${row.statusCode} ${STATUS_CODES[row.statusCode] ?? ""}`.trimEnd());
  for (const [name, value] of Object.entries(row.headers)) write(printable(`${name}: ${value}`));
  write("");
  if (isTerminal()) writeForPerson(row.contentType, row.body);
  else writeOutput(row.body);
  if (row.possiblyTruncated) writeNote("The provider gave this answer no length: its end may be missing.");
}

/** What is neither JSON nor text would only disturb the terminal, and so would what moves its cursor. */
function writeForPerson(contentType: string, body: Uint8Array): void {
  const text = Buffer.from(body).toString();
  const isJson = /[/+]json$/.test(contentType);
  if (isJson || contentType.startsWith("text/")) writeLine(printableLines(isJson ? indented(text) : text));
  else writeNote(`(${body.length} bytes of ${contentType || "unknown type"}; redirect standard output to keep them)`);
}

/** Only for reading: numbers are printed as JavaScript knows them. */
function indented(text: string): string {
  try {
    return JSON.stringify(JSON.parse(text), undefined, 2);
  } catch {
    // Announced as JSON but not valid: as it is.
    return text;
  }
}
