import type { AuditEntry } from "../model/audit.js";

/** How many ids of one millisecond come one after another: 12 bits. */
const MAX_COUNT = 0xfff;

/** When something was written down, and its id, which begins with that. */
export type AuditStamp = Pick<AuditEntry, "id" | "at">;

/**
 * Creates the maker of stamps for the audit trail. Ids are UUIDs of version 7 with a counter (RFC 9562 sections 5.7 and
 * 6.2, method 1). Each is greater than the one before, also when the clock goes back; of two processes, as their clocks
 * are. The time is the id's: who asks for what was before it does not get the record itself.
 *
 * @param now milliseconds since the epoch.
 * @param random 8 random bytes.
 */
export function createAuditStamps(now: () => number, random: () => Uint8Array): () => AuditStamp {
  let lastMs = 0;
  let count = 0;
  return () => {
    const ms = Math.max(now(), lastMs);
    count = ms === lastMs ? count + 1 : 0;
    lastMs = count > MAX_COUNT ? ms + 1 : ms;
    count = count > MAX_COUNT ? 0 : count;
    return { id: uuidFrom(lastMs, count, random()), at: lastMs };
  };
}

/** Smaller than every id of this moment on, greater than every one before it. @param at milliseconds since the epoch. */
export function auditIdBefore(at: number): string {
  return `${timeText(at)}-`;
}

function uuidFrom(ms: number, count: number, random: Uint8Array): string {
  const bytes = Buffer.from(random.subarray(0, 8));
  // The variant: binary 10.
  bytes[0] = ((bytes[0] as number) & 0x3f) | 0x80;
  const tail = bytes.toString("hex");
  return `${timeText(ms)}-7${count.toString(16).padStart(3, "0")}-${tail.slice(0, 4)}-${tail.slice(4)}`;
}

/** The first two groups: 48 bits of milliseconds. */
function timeText(ms: number): string {
  const text = Math.max(0, Math.floor(ms)).toString(16).padStart(12, "0");
  return `${text.slice(0, 8)}-${text.slice(8)}`;
}
