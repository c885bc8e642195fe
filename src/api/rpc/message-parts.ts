import { Code, ConnectError } from "@connectrpc/connect";
import { CALL_JSON_LIMITS } from "../../call/call.js";
import { createJsonText, stringEnd } from "../../json/json-scan.js";
import type { BinaryParts } from "./binary-parts.js";

/**
 * Most parts of a message, of which a value in a payload has two: far beyond any API. protobuf-es makes objects of each,
 * all in one go and before anybody knows whose call it is: of ten mebibytes of empty lists five million, for which it
 * holds everybody else up for five seconds. `body` is one part, whatever stands in it.
 */
const MAX_PARTS = 200_000;

/**
 * Most keys of a message in JSON: each of payload, headers and query string may have as many as a payload of the JSON
 * route. Long ones take protobuf-es ten times as long as other parts.
 */
export const MAX_MESSAGE_KEYS: number = 3 * CALL_JSON_LIMITS.maxKeys;

/** What is said of a message that has more. */
export const TOO_MANY_KEYS = `the message has more than ${MAX_MESSAGE_KEYS} keys`;

/** What is said of a message that has more parts. */
export const TOO_MANY_PARTS = `the message has more than ${MAX_PARTS} parts; send a payload of so many values as body`;

/**
 * Refuses a message in protobuf's encoding that has too many parts: fields at any depth of what the schema says are
 * messages. What cannot be decoded is not judged beyond the place where decoding ends, too.
 *
 * @param parts of messages of its kind.
 * @throws ConnectError INVALID_ARGUMENT.
 */
export function requireFewParts(parts: BinaryParts, message: Uint8Array): void {
  if (!parts.areWithin(message, MAX_PARTS)) throw tooManyParts();
}

/** The same of a message in JSON: members, elements, objects and arrays count, and members once more as keys. */
export function requireFewPartsOfJson(message: Uint8Array): void {
  // Each has one byte or more.
  if (message.length > MAX_MESSAGE_KEYS) requireFewMarks(message);
}

const QUOTE = 0x22;
const COLON = 0x3a;
/** `,` `:` `[` `{` */
const MARKS: ReadonlySet<number> = new Set([0x2c, COLON, 0x5b, 0x7b]);

function requireFewMarks(message: Uint8Array): void {
  const text = createJsonText(message, message.length);
  let parts = 0;
  let keys = 0;
  for (let at = 0; at < message.length; at++) {
    const byte = message[at] as number;
    // One before its end, from where the loop goes on.
    if (byte === QUOTE) at = stringEnd(text, at) - 1;
    else if (MARKS.has(byte)) {
      if (++parts > MAX_PARTS) throw tooManyParts();
      if (byte === COLON && ++keys > MAX_MESSAGE_KEYS) throw new ConnectError(TOO_MANY_KEYS, Code.InvalidArgument);
    }
  }
}

function tooManyParts(): ConnectError {
  return new ConnectError(TOO_MANY_PARTS, Code.InvalidArgument);
}
