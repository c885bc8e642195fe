import type { UniversalServerResponse } from "@connectrpc/connect/protocol";

/** What the JSON decoder of protobuf says in front of the part that quotes the message; the name is the schema's. */
const PLACE = /^cannot decode (?:(?:message|field|enum) )?[\w.]+ from JSON/;

/** What follows it, and how to say so without a quotation. */
const FAULTS: ReadonlyArray<readonly [pattern: RegExp, text: string]> = [
  [/^: key ".*" is unknown$/s, "it has a field that is not in the schema"],
  [/^: duplicate (?:object|map) key "/, "an object in it has the same key twice"],
  [/^: set multiple times$/, "it is given more than once"],
  [/^: maximum recursion depth/, "it is nested too deep"],
  [/JSON/, "it is not one JSON object"],
];

/** The decoder of the binary encoding quotes nothing. */
const BINARY = "parse binary: ";

/** Texts of connect that quote nothing but numbers. */
const PLAIN = [
  new RegExp(`^${BINARY}.*$`, "s"),
  /^protocol error: invalid connect timeout value/,
  /^protocol error: promised \d+ bytes, received \d+$/,
  /^timeout \d+ms must be <= \d+$/,
  /^decompression failed$/,
];

/**
 * The answer of a unary Connect call, but for a message that cannot be decoded: that is the caller's fault in either
 * encoding, not ours, and what the error quotes of it may be a secret in the wrong place (threats J14).
 */
export async function withDecodeError(universal: UniversalServerResponse): Promise<UniversalServerResponse> {
  const { status, header, body } = universal;
  if ((status !== 400 && status !== 500) || body === undefined) return universal;
  const chunks: Uint8Array[] = [];
  for await (const chunk of body) chunks.push(chunk);
  // Only an error that quotes much is so long that it is compressed.
  const error = header?.has("content-encoding") ? {} : errorFrom(Buffer.concat(chunks));
  const message = String(error.message ?? "");
  const isOurs = error.details !== undefined || (status === 500 && !message.startsWith(BINARY));
  if (isOurs) return { ...universal, body: iterableOf(chunks) };
  const answer = Buffer.from(JSON.stringify({ code: "invalid_argument", message: textFrom(message) }));
  const fields = { "content-type": "application/json", "content-length": String(answer.length) };
  return { status: 400, header: new Headers(fields), body: iterableOf([answer]) };
}

/** An error's text without what it quotes. Pure. */
export function textFrom(message: string): string {
  const place = PLACE.exec(message)?.[0];
  if (place !== undefined) return `${place}: ${faultFrom(message.slice(place.length))}`;
  return PLAIN.map((pattern) => pattern.exec(message)?.[0]).find(Boolean) ?? "The message cannot be decoded.";
}

function faultFrom(rest: string): string {
  return FAULTS.find(([pattern]) => pattern.test(rest))?.[1] ?? "it has a value of the wrong type";
}

/** Errors are JSON objects with a message; only ours have details, and they quote nothing. */
function errorFrom(body: Buffer): { readonly message?: unknown; readonly details?: unknown } {
  return JSON.parse(body.toString()) as { readonly message?: unknown; readonly details?: unknown };
}

async function* iterableOf(chunks: readonly Uint8Array[]): AsyncGenerator<Uint8Array> {
  yield* chunks;
}
