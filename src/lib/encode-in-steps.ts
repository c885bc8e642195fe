import { type Bytes, between, createChunks, slicesOf } from "./chunks.js";
import type { Steps } from "./turns.js";

const QUOTE = Buffer.from('"');
/** Base64 makes four characters of three bytes (RFC 4648 section 4). */
const GROUP_BYTES = 3;

/** Text in UTF-8 as a JSON string, quotes included: the bytes that `JSON.stringify()` makes of the text. */
export function* stringInSteps(utf8: Bytes): Steps<Bytes> {
  const json = createChunks();
  json.push(QUOTE);
  for (const slice of slicesOf(utf8)) {
    json.push(escaped(slice));
    yield;
  }
  json.push(QUOTE);
  return json;
}

/** Few bytes in base64, as a JSON string with its quotes. */
export function base64Json(bytes: Bytes): string {
  return `"${bytes.concat().toString("base64")}"`;
}

/** The same of many, in steps. */
export function* base64StringInSteps(bytes: Bytes): Steps<Bytes> {
  return between(QUOTE, yield* base64InSteps(bytes), QUOTE);
}

/** Bytes in base64. */
export function* base64InSteps(bytes: Bytes): Steps<Bytes> {
  const encoded = createChunks();
  let rest: Buffer = NOTHING;
  for (const slice of slicesOf(bytes)) {
    const input = rest.length === 0 ? slice : Buffer.concat([rest, slice]);
    const whole = input.length - (input.length % GROUP_BYTES);
    encoded.push(base64(input.subarray(0, whole)));
    rest = input.subarray(whole);
    yield;
  }
  encoded.push(base64(rest));
  return encoded;
}

const NOTHING = Buffer.alloc(0);

/**
 * Everything that JSON escapes is one byte of UTF-8, and the bytes of longer characters, taken for latin1, are nothing
 * that it escapes (RFC 8259 section 7). So a slice may end within a character, and nothing is decoded.
 */
function escaped(utf8: Buffer): Buffer {
  const text = JSON.stringify(utf8.toString("latin1"));
  return Buffer.from(text.slice(1, -1), "latin1");
}

function base64(bytes: Buffer): Buffer {
  return Buffer.from(bytes.toString("base64"), "latin1");
}
