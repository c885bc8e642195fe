import { Code } from "@connectrpc/connect";
import type { UniversalServerResponse } from "@connectrpc/connect/protocol";
import { TOO_MANY_KEYS, TOO_MANY_PARTS } from "./message-parts.js";
import { changeLastEnvelope, withChanges } from "./one-message.js";

/** https://connectrpc.com/docs/protocol/#streaming-rpcs: the envelope is the end of the stream. */
const END_STREAM_FLAG = 0b10;

/** An error as JSON (https://connectrpc.com/docs/protocol/#error-codes). */
interface ErrorJson {
  readonly code?: unknown;
  readonly message?: unknown;
  readonly details?: unknown;
}

/** What is read of an error that is compressed: only one that quotes much is so long. */
const LONG_ERROR: ErrorJson = { code: "invalid_argument" };

/**
 * The answer of a unary call, but for a message that cannot be decoded: that is the caller's fault in either encoding,
 * not ours.
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

/** The same of a stream, whose error stands in its end. */
function withEndStreamError(body: AsyncIterable<Uint8Array>): AsyncIterable<Uint8Array> {
  const chunk = changeLastEnvelope(END_STREAM_FLAG, (data) => {
    const end = data === undefined ? { error: LONG_ERROR } : parseJson<{ readonly error?: ErrorJson }>(data);
    const error = decodeErrorFrom(end.error ?? {});
    return error === undefined ? undefined : Buffer.from(JSON.stringify({ ...end, error }));
  });
  return withChanges(body, { chunk });
}

/** Undefined for every other error: only ours have details, and they quote nothing. */
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

/** https://github.com/grpc/grpc/blob/master/doc/PROTOCOL-WEB.md: the envelope holds the trailers. */
const TRAILERS_FLAG = 0x80;

const INVALID_ARGUMENT = String(Code.InvalidArgument);

/** An answer over gRPC, whose trailers say no more than where a message that cannot be decoded is wrong. */
function withGrpcError(body: AsyncIterable<Uint8Array>, trailer: Headers): AsyncIterable<Uint8Array> {
  // They are filled while the body is made.
  return withChanges(body, { end: () => void changeStatus(trailer) });
}

/** The same over gRPC-Web, where the trailers are the last envelope; only those that quote much are compressed. */
function withGrpcWebError(body: AsyncIterable<Uint8Array>): AsyncIterable<Uint8Array> {
  const chunk = changeLastEnvelope(TRAILERS_FLAG, (data) => {
    const trailer = data === undefined ? new Headers({ "grpc-status": INVALID_ARGUMENT }) : trailerFrom(data);
    return changeStatus(trailer) ? bytesFrom(trailer) : undefined;
  });
  return withChanges(body, { chunk });
}

/** Returns false for every other status: only ours have details, and they quote nothing. Changes it in place. */
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
 * The answer of connect over any of its protocols, but for what it quotes of a message that cannot be decoded, which may
 * be a secret in the wrong place (threats J14).
 */
export async function withDecodeError(universal: UniversalServerResponse): Promise<UniversalServerResponse> {
  const { header, body, trailer } = universal;
  const type = header?.get("content-type") ?? "";
  if (body === undefined || !/^application\/(?:grpc|connect\+)/.test(type)) return withUnaryError(universal);
  if (type.startsWith("application/connect+")) return { ...universal, body: withEndStreamError(body) };
  if (type.startsWith("application/grpc-web")) return { ...universal, body: withGrpcWebError(body) };
  return trailer === undefined ? universal : { ...universal, body: withGrpcError(body, trailer) };
}

/** What the decoder of the binary encoding says first; it quotes nothing. */
const BINARY_FAULT = "parse binary: ";

/** Texts of connect that quote nothing but numbers. */
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
 * The text of an error about a message that cannot be decoded, without what it quotes of it (threats J14), but for the
 * name of a field that is not in the schema. Pure.
 */
function textFromDecodeFault(message: string): string {
  const found = messageFaultFrom(message);
  if (found !== undefined) return `${found.place}: ${found.fault}`;
  return PLAIN.map((pattern) => pattern.exec(message)?.[0]).find(Boolean) ?? "The message cannot be decoded.";
}

/** What the JSON decoder of protobuf says in front of the part that quotes the message; the name is the schema's. */
const PLACE = /^cannot decode (?:(?:message|field|enum) )?[\w.]+ from JSON/;

/**
 * A key that is unknown and reads as the name of a field, in either spelling: words of letters. A token or a key of
 * random characters does not, and is not told.
 */
const UNKNOWN_NAME = /^: key "(?=.{1,40}")([a-z]+(?:_[a-z]+|[A-Z][a-z]+)*)" is unknown$/;

/** How V8 ends what it says of a text that is no JSON; a value that is quoted ends with a quote. */
const NO_JSON =
  / (?:is not valid JSON|end of JSON input|(?:in|after) JSON at position \d+(?: \(line \d+ column \d+\))?)$/;

/** What follows it, and how to say so without a quotation. */
const FAULTS: ReadonlyArray<readonly [pattern: RegExp, text: string]> = [
  [/^: key ".*" is unknown$/s, "it has a field that is not in the schema"],
  [/^: duplicate (?:object|map) key "/, "an object in it has the same key twice"],
  [/^: set multiple times$/, "it is given more than once"],
  [/^: maximum recursion depth/, "it is nested too deep"],
  [NO_JSON, "it is not one JSON object"],
];

/** What is wrong with a message in JSON, without a quotation. */
interface MessageFault {
  /** Which message, field or enum, by the schema's name. */
  readonly place: string;
  readonly fault: string;
}

/**
 * Reads the text of an error of protobuf's JSON decoder, and leaves out what it quotes of the message (threats J14), but
 * for the name of a field that is not in the schema. Undefined for any other text. Pure.
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
