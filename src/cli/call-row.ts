import { STATUS_CODES } from "node:http";
import type { ResultRow } from "../../gen/relay/v1/relay_pb.js";
import { validateJson } from "../json/json-validator.js";
import { isTerminal, printable, usageError, writeLine, writeNote, writeOutput } from "./command.js";

/** Protocols of the public port. */
export const PROTOCOLS = ["connect", "grpc", "grpc-web", "rest"] as const;

/** One of {@link PROTOCOLS}. */
export type Protocol = (typeof PROTOCOLS)[number];

/** How a call is sent to the relay. */
export interface CallTarget {
  /** `http://host:port`, without a slash at the end. */
  readonly relayUrl: string;
  readonly privateKey: string | undefined;
  /** `data`: the provider's body mapped to JSON. `body`: its exact bytes. */
  readonly responseMode: "data" | "body";
}

/** The single row of the envelope. */
export interface CallRow {
  readonly row: ResultRow;
  /** ProtoJSON; over REST exactly as the relay wrote it. */
  readonly json: string;
}

/** Timeout in case the relay hangs. A call normally ends within the relay's own deadline of at most 120 s. */
export const CALL_TIMEOUT_MS = 130_000;

/** Largest answer that is read: far above the relay's default limit, far below the limits of memory and strings. */
export const MAX_ANSWER_BYTES = 256 * 1024 * 1024;

/** Message for a relay that cannot be reached or whose certificate is not trusted. */
export function unreachable(relayUrl: string, code: string): string {
  if (code === "ERR_TLS_CERT_ALTNAME_INVALID") {
    return `The certificate of ${relayUrl} is for another name (${code}). Give --relay the name in the certificate.`;
  }
  if (code === "CERT_HAS_EXPIRED" || code === "CERT_NOT_YET_VALID") {
    return `The certificate of ${relayUrl} is not valid at this time (${code}). Replace it, or correct the clock.`;
  }
  if (/CERT|^UNABLE_TO_|^INVALID_(?:CA|PURPOSE)$/.test(code)) {
    return `The certificate of ${relayUrl} is not trusted here (${code}). For a private certificate, set NODE_EXTRA_CA_CERTS to a file with the CA's certificate, or with the certificate itself if it is self-signed.`;
  }
  if (code === "EPROTO" || code.startsWith("ERR_SSL_") || code.startsWith("ERR_TLS_")) {
    return `${relayUrl} does not speak TLS as expected (${code}). Is it http rather than https? --relay sets the address.`;
  }
  return `No relay answers at ${relayUrl} (${code}). Start it with 'relay serve', or give another address with --relay.`;
}

/** What `relay call` sends, over any protocol. */
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
  /** Names and values in the given order; a repeated name replaces the earlier value. */
  readonly headers: Readonly<Record<string, string>>;
}

/** Arguments from the command line, with the payload already read. */
export interface CallArguments {
  readonly app: string;
  readonly user: string;
  readonly userSignature?: string;
  readonly request?: string;
  readonly header?: readonly string[];
}

/**
 * Parses the arguments of a call. As with other HTTP clients, the method defaults to GET, or POST with a payload.
 * Throws a usage error that names the argument. The relay checks the rest.
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

/** The body for the JSON route. Contains the payload's own text, so that no number is rounded. */
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

/**
 * Prints the provider's answer as an HTTP client would: status line and headers to standard error, the body's own bytes
 * to standard output. On a terminal, JSON is indented. Prints nothing when no provider answered.
 *
 * @param include print status line and headers to standard output, before the body.
 */
export function writeAnswer(row: ResultRow, { include = false }: { readonly include?: boolean }): void {
  if (row.body === undefined) return;
  const write = include ? writeLine : writeNote;
  write(`HTTP ${row.statusCode} ${STATUS_CODES[row.statusCode] ?? ""}`.trimEnd());
  for (const [name, value] of Object.entries(row.headers)) write(printable(`${name}: ${value}`));
  write("");
  if (isTerminal()) writeForPerson(row.contentType, row.body);
  else writeOutput(row.body);
  if (row.possiblyTruncated) writeNote("The provider sent no length for this answer, so its end may be missing.");
}

/** Prints JSON and text for a terminal, with control characters escaped. Other types would only garble it. */
function writeForPerson(contentType: string, body: Uint8Array): void {
  const text = Buffer.from(body).toString();
  const isJson = /[/+]json$/.test(contentType);
  if (isJson || contentType.startsWith("text/")) writeLine(isJson ? indented(text) : text);
  else writeNote(`(${body.length} bytes of ${contentType || "unknown type"}; redirect standard output to keep them)`);
}

/** Only for display, because numbers are printed as JavaScript reads them. */
function indented(text: string): string {
  try {
    return JSON.stringify(JSON.parse(text), undefined, 2);
  } catch {
    // Declared as JSON but invalid: shown unchanged.
    return text;
  }
}
