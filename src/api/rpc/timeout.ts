/** Longest timeout a client may ask for, in milliseconds; a call ends by its own deadline long before. One day. */
export const MAX_TIMEOUT_MS = 86_400_000;

/** Timers of Node.js cannot be longer; a longer one prints a warning and strikes at once. */
const MAX_TIMER_MS = 2 ** 31 - 1;
/** The longest timeout in the unit of milliseconds: eight digits. */
const LONGEST_GRPC = "99999999m";
/** Milliseconds of the units of grpc-timeout that can be longer than a timer. */
const LONG_UNITS: ReadonlyMap<string, number> = new Map([
  ["H", 3_600_000],
  ["M", 60_000],
  ["S", 1_000],
]);

/**
 * Shortens timeouts that no timer can hold. connect refuses them, as they are over its limit, but starts the timer
 * first; what is left is over the limit as well.
 *
 * @param header fields of a request; changed in place.
 */
export function shortenTimeout(header: Headers): void {
  if (Number(header.get("connect-timeout-ms")) > MAX_TIMER_MS) header.set("connect-timeout-ms", String(MAX_TIMER_MS));
  const [, value, unit = ""] = /^(\d{1,8})([HMS])$/.exec(header.get("grpc-timeout") ?? "") ?? [];
  if (Number(value) * (LONG_UNITS.get(unit) ?? 0) > MAX_TIMER_MS) header.set("grpc-timeout", LONGEST_GRPC);
}
