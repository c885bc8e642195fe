import { setImmediate as nextTurn } from "node:timers/promises";
import { createJsonValidator, validateJson } from "../json/json-validator.js";
import type { Redactor } from "../telemetry/redact.js";

/** Bytes looked at in one turn of the event loop: about a millisecond's work, so that other calls are not held up. */
const TURN_BYTES = 256 * 1024;

/** Whether the bytes are one valid JSON value; other work gets its turn in between when there are many. */
export function isJsonInTurns(bytes: Buffer): boolean | Promise<boolean> {
  return bytes.length <= TURN_BYTES ? validateJson(bytes) === "valid" : isLargeJson(bytes);
}

/** The bytes without secrets. Searched in turns; only where something is found is the whole gone through at once. */
export function redactedInTurns(bytes: Buffer, redactor: Redactor): Buffer | Promise<Buffer> {
  return bytes.length <= TURN_BYTES ? redactor.bytes(bytes) : redactedLarge(bytes, redactor);
}

async function isLargeJson(bytes: Buffer): Promise<boolean> {
  const validator = createJsonValidator();
  for (let at = 0; at < bytes.length; at += TURN_BYTES) {
    if (at > 0) await nextTurn();
    if (!validator.push(bytes.subarray(at, at + TURN_BYTES))) return false;
  }
  return validator.end() === "valid";
}

async function redactedLarge(bytes: Buffer, redactor: Redactor): Promise<Buffer> {
  for (let at = 0; at < bytes.length; at += TURN_BYTES) {
    if (at > 0) await nextTurn();
    const piece = bytes.subarray(Math.max(0, at - redactor.overlap), at + TURN_BYTES);
    if (redactor.mayOccurIn(piece)) return redactor.bytes(bytes);
  }
  return bytes;
}
