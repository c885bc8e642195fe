import { Code } from "@connectrpc/connect";
import type { UniversalServerResponse } from "@connectrpc/connect/protocol";
import { TOO_MANY_KEYS, TOO_MANY_PARTS } from "./message-parts.js";
import { changeLastEnvelope, withChanges } from "./one-message.js";

/** Marks the last envelope of a stream (https://connectrpc.com/docs/protocol/#streaming-rpcs). */
const END_STREAM_FLAG = 0b10;

/** An error as JSON (https://connectrpc.com/docs/protocol/#error-codes). */
interface ErrorJson {
  readonly code?: unknown;
  readonly message?: unknown;
  readonly details?: unknown;
}

/** Stands for a compressed error: only one that quotes much of a message is long enough to be compressed. */
const LONG_ERROR: ErrorJson = { code: "invalid_argument" };

/**
 * The answer of a unary call. An error for a message that cannot be decoded becomes 400 in either encoding: it is the
 * caller's fault, not the server's.
 */
async function withUnaryError(universal: UniversalServerResponse): Promise<UniversalServerResponse> {
  const { status, header, body } = universal;
  if ((status !== 400 && status !== 500) || body === undefined) return universal;
  const chunks: Uint8Array[] = [];
  for await (const chunk of body) chunks.push(chunk);
  const error = header?.has("content-encoding") ? LONG_ERROR : parseJson<ErrorJson>(Buffer.concat(chunks));
  const decodeError = decodeErrorFrom(error);
  if (decodeError === undefined) return { ...universal, body: iterableOf(chunks) };
  const answer = Buffer.from(JSON.stringify(decodeError));
  const fields = { "content-type": "application/json", "content-length": String(answer.length) };
  return { status: 400, header: new Headers(fields), body: iterableOf([answer]) };
}

/** The same for a stream, whose error is in its last envelope. */
function withEndStreamError(body: AsyncIterable<Uint8Array>): AsyncIterable<Uint8Array> {
  const chunk = changeLastEnvelope(END_STREAM_FLAG, (data) => {
    const end = data === undefined ? { error: LONG_ERROR } : parseJson<{ readonly error?: ErrorJson }>(data);
    const error = decodeErrorFrom(end.error ?? {});
    return error === undefined ? undefined : Buffer.from(JSON.stringify({ ...end, error }));
  });
  return withChanges(body, { chunk });
}

/** The error to send for a message that cannot be decoded; undefined for others. Errors with details are our own. */
function decodeErrorFrom({ code, message, details }: ErrorJson): ErrorJson | undefined {
  const text = String(message ?? "");
  const isDecodeFault = code === "invalid_argument" || (code === "internal" && text.startsWith(BINARY_FAULT));
  if (!isDecodeFault || details !== undefined) return undefined;
  return { code: "invalid_argument", message: textFromDecodeFault(text) };
}

function parseJson<Json>(json: Uint8Array): Json {
  return JSON.parse(Buffer.from(json).toString()) as Json;
}

async function* iterableOf(chunks: readonly Uint8Array[]): AsyncGenerator<Uint8Array> {
  yield* chunks;
}

/** Marks the envelope with the trailers (https://github.com/grpc/grpc/blob/master/doc/PROTOCOL-WEB.md). */
const TRAILERS_FLAG = 0x80;

const INVALID_ARGUMENT = String(Code.InvalidArgument);

/** An answer over gRPC whose trailers do not quote a message that cannot be decoded. */
function withGrpcError(body: AsyncIterable<Uint8Array>, trailer: Headers): AsyncIterable<Uint8Array> {
  // The trailers are set while the body is produced.
  return withChanges(body, { end: () => void changeStatus(trailer) });
}

/** The same over gRPC-Web, where the trailers are the last envelope. They are compressed only if they quote much. */
function withGrpcWebError(body: AsyncIterable<Uint8Array>): AsyncIterable<Uint8Array> {
  const chunk = changeLastEnvelope(TRAILERS_FLAG, (data) => {
    const trailer = data === undefined ? new Headers({ "grpc-status": INVALID_ARGUMENT }) : trailerFrom(data);
    return changeStatus(trailer) ? bytesFrom(trailer) : undefined;
  });
  return withChanges(body, { chunk });
}

/**
 * Rewrites the status of a message that cannot be decoded, in place. False for others; those with details are our own.
 */
function changeStatus(trailer: Headers): boolean {
  if (trailer.get("grpc-status") !== INVALID_ARGUMENT || trailer.has("grpc-status-details-bin")) return false;
  const text = decodeURIComponent(trailer.get("grpc-message") ?? "");
  trailer.set("grpc-message", encodeURIComponent(textFromDecodeFault(text)));
  return true;
}

function trailerFrom(data: Uint8Array): Headers {
  const lines = Buffer.from(data).toString().split("\r\n").filter(Boolean);
  return new Headers(lines.map((line) => [line.slice(0, line.indexOf(":")), line.slice(line.indexOf(":") + 1).trim()]));
}

function bytesFrom(trailer: Headers): Uint8Array {
  return Buffer.from([...trailer].map(([name, value]) => `${name}: ${value}\r\n`).join(""));
}

/**
 * The answer of connect over any of its protocols, without quotes from a message that cannot be decoded, which may be a
 * secret in the wrong place (threats J14).
 */
export async function withDecodeError(universal: UniversalServerResponse): Promise<UniversalServerResponse> {
  const { header, body, trailer } = universal;
  const type = header?.get("content-type") ?? "";
  if (body === undefined || !/^application\/(?:grpc|connect\+)/.test(type)) return withUnaryError(universal);
  if (type.startsWith("application/connect+")) return { ...universal, body: withEndStreamError(body) };
  if (type.startsWith("application/grpc-web")) return { ...universal, body: withGrpcWebError(body) };
  return trailer === undefined ? universal : { ...universal, body: withGrpcError(body, trailer) };
}

/** How errors of the binary decoder begin; they quote nothing. */
const BINARY_FAULT = "parse binary: ";

/** Error texts of connect that quote only numbers. */
const PLAIN = [
  new RegExp(`^${BINARY_FAULT}.*$`, "s"),
  /^protocol error: invalid (?:connect|grpc) timeout value/,
  /^protocol error: promised \d+ bytes, received \d+$/,
  /^protocol error: incomplete envelope$/,
  /^unexpected end flag$/,
  /^timeout \d+ms must be <= \d+$/,
  /^decompression failed$/,
  new RegExp(`^(?:${TOO_MANY_KEYS}|${TOO_MANY_PARTS})$`),
];

/**
 * The error text for a message that cannot be decoded, without quotes from it (threats J14), except the name of a field
 * that is not in the schema. Pure.
 */
function textFromDecodeFault(message: string): string {
  const found = messageFaultFrom(message);
  if (found !== undefined) return `${found.place}: ${found.fault}`;
  return PLAIN.map((pattern) => pattern.exec(message)?.[0]).find(Boolean) ?? "The message cannot be decoded.";
}

/** How errors of protobuf's JSON decoder begin, before they quote the message; the name is from the schema. */
const PLACE = /^cannot decode (?:(?:message|field|enum) )?[\w.]+ from JSON/;

/**
 * An unknown key that looks like a field name, in either spelling: words of letters. A token or another key of random
 * characters does not match, and is not quoted.
 */
const UNKNOWN_NAME = /^: key "(?=.{1,40}")([a-z]+(?:_[a-z]+|[A-Z][a-z]+)*)" is unknown$/;

/** How V8's errors for invalid JSON end; a quoted value would end with a quote. */
const NO_JSON =
  / (?:is not valid JSON|end of JSON input|(?:in|after) JSON at position \d+(?: \(line \d+ column \d+\))?)$/;

/** The rest of the error → what to say without quoting. */
const FAULTS: ReadonlyArray<readonly [pattern: RegExp, text: string]> = [
  [/^: key ".*" is unknown$/s, "it has a field that is not in the schema"],
  [/^: duplicate (?:object|map) key "/, "an object in it has the same key twice"],
  [/^: set multiple times$/, "it is given more than once"],
  [/^: maximum recursion depth/, "it is nested too deeply"],
  [NO_JSON, "it is not valid JSON"],
];

/** What is wrong with a JSON message, without quoting it. */
interface MessageFault {
  /** Which message, field or enum, by the schema's name. */
  readonly place: string;
  readonly fault: string;
}

/**
 * Reads an error text of protobuf's JSON decoder, and leaves out its quotes from the message (threats J14), except the
 * name of a field that is not in the schema. Undefined for any other text. Pure.
 */
export function messageFaultFrom(text: string): MessageFault | undefined {
  const place = PLACE.exec(text)?.[0];
  return place === undefined ? undefined : { place, fault: faultFrom(text.slice(place.length)) };
}

function faultFrom(rest: string): string {
  const name = UNKNOWN_NAME.exec(rest)?.[1];
  if (name !== undefined) return `it has the field ${name}, which is not in the schema`;
  return FAULTS.find(([pattern]) => pattern.test(rest))?.[1] ?? "it has a value of the wrong type";
}
