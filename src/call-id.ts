import { randomUUID } from "node:crypto";

/** Version 4 and 7 differ in this digit; the variant behind it is the same. */
const VERSION_AT = 14;

const CALL_ID = /^([\da-f]{8})-([\da-f]{4})-7[\da-f]{3}-[89ab][\da-f]{3}-[\da-f]{12}$/;

/**
 * Makes the ids of calls: a UUID that begins with its time (RFC 9562, version 7), by which the record of a call is found
 * without an index of ids. Whoever has an id learns when the call began, and nothing else.
 *
 * @param now milliseconds since the epoch.
 */
export function createCallIds(now: () => number): () => string {
  let prefixTime = Number.NaN;
  let prefix = "";
  return () => {
    const time = now();
    if (time !== prefixTime) {
      const hex = time.toString(16).padStart(12, "0");
      prefix = `${hex.slice(0, 8)}-${hex.slice(8)}-7`;
      prefixTime = time;
    }
    return prefix + randomUUID().slice(VERSION_AT + 1);
  };
}

/** When a call began, in milliseconds since the epoch; undefined for a text that is no id of a call. */
export function timeOfCallId(callId: string): number | undefined {
  const [, high, low] = CALL_ID.exec(callId) ?? [];
  return high === undefined ? undefined : Number.parseInt(`${high}${low}`, 16);
}
