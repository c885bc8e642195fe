import type { UniversalServerResponse } from "@connectrpc/connect/protocol";
import { BINARY_FAULT, textFromDecodeFault } from "./decode-fault.js";
import { changeLastEnvelope, withChanges } from "./response-body.js";

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
export async function withUnaryError(universal: UniversalServerResponse): Promise<UniversalServerResponse> {
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
export function withEndStreamError(body: AsyncIterable<Uint8Array>): AsyncIterable<Uint8Array> {
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
