import type { HttpRequest } from "../listener/exchange.js";
import { MAX_TIMEOUT_MS } from "../rpc/timeout.js";
import { isPrefixed, type LaneForm } from "./head.js";

const UNITS_MS: ReadonlyMap<string | undefined, number> = new Map([
  ["H", 3_600_000],
  ["M", 60_000],
  ["S", 1_000],
  ["m", 1],
  ["u", 1e-3],
  ["n", 1e-6],
]);

/**
 * Milliseconds of a grpc-timeout; undefined for one that is malformed, over already, or over the limit. Pure.
 *
 * https://github.com/grpc/grpc/blob/master/doc/PROTOCOL-HTTP2.md#requests
 */
export function timeoutFromGrpc(text: string): number | undefined {
  const [, digits, unit] = /^(\d{1,8})([HMSmun])$/.exec(text) ?? [];
  return usable(Number(digits) * (UNITS_MS.get(unit) ?? Number.NaN));
}

/**
 * Milliseconds of a connect-timeout-ms; undefined for one that is malformed, over already, or over the limit. Pure.
 *
 * https://connectrpc.com/docs/protocol/#unary-request
 */
export function timeoutFromConnect(text: string): number | undefined {
  return /^\d{1,10}$/.test(text) ? usable(Number(text)) : undefined;
}

/** Lets connect-node find that the time of a request is over, which it cannot know when it sees the request only now. */
export function endTimeout({ headers }: HttpRequest, form: LaneForm): void {
  if (isPrefixed(form)) headers["grpc-timeout"] = "0m";
  else headers["connect-timeout-ms"] = "0";
}

/** Less than a millisecond is no time for a call. */
function usable(timeoutMs: number): number | undefined {
  return timeoutMs >= 1 && timeoutMs <= MAX_TIMEOUT_MS ? timeoutMs : undefined;
}
