import { createUtf8Checker } from "../json/utf8-checker.js";
import { type Bytes, createChunks } from "../lib/chunks.js";
import { slicesOf } from "../lib/slices.js";
import type { Steps } from "../lib/turns.js";
import { BYTE_ORDER_MARK_BYTES, decoderForText, type TextDecoding, windows1252 } from "./text.js";

/** Text as UTF-8: what `decodeText()` makes of it, in steps. What is UTF-8 already is not copied. */
export function* utf8InSteps(body: Bytes, charset: string | undefined): Steps<Bytes> {
  const declared = decoderForText(startOf(body), charset);
  if (declared.encoding !== "utf-8") return yield* decoded(body, declared);
  return (yield* isUtf8InSteps(body)) ? withoutByteOrderMark(body) : yield* decoded(body, windows1252());
}

function* isUtf8InSteps(body: Bytes): Steps<boolean> {
  const checker = createUtf8Checker();
  for (const slice of slicesOf(body)) {
    if (!checker.push(slice)) return false;
    yield;
  }
  return checker.end();
}

/** A decoder keeps what is cut of a character until the rest comes, so no slice of its text ends in half a pair. */
function* decoded(body: Bytes, decoder: TextDecoding): Steps<Bytes> {
  const utf8 = createChunks();
  for (const slice of slicesOf(body)) {
    utf8.push(Buffer.from(decoder.decode(slice, { stream: true })));
    yield;
  }
  utf8.push(Buffer.from(decoder.decode()));
  return utf8;
}

function withoutByteOrderMark(body: Bytes): Bytes {
  if (!startOf(body).equals(UTF8_BYTE_ORDER_MARK)) return body;
  const rest = createChunks();
  let left = BYTE_ORDER_MARK_BYTES;
  for (const piece of body.pieces) {
    if (piece.length > left) rest.push(piece.subarray(left));
    left = Math.max(0, left - piece.length);
  }
  return rest;
}

const UTF8_BYTE_ORDER_MARK = Buffer.from([0xef, 0xbb, 0xbf]);

/** As many bytes as a byte order mark may have. */
function startOf({ pieces }: Bytes): Buffer {
  return Buffer.concat(pieces.slice(0, BYTE_ORDER_MARK_BYTES)).subarray(0, BYTE_ORDER_MARK_BYTES);
}
