import { type Guard, guard } from "./guard.js";

const AGAINST = "api/fast/against-connect";

/** What the lane in front of connect-node must not take, and must not lose. */
export const LANE_GUARDS: readonly Guard[] = [
  guard(
    "lane: pages that may not call",
    [
      'surface: isPrefixed(form) ? form : "connect", caller,',
      'surface: isPrefixed(form) ? form : "connect", caller: { ...caller, origin: undefined },',
    ],
    AGAINST,
  ),
  guard("lane: pages that may read", ["if (origin !== undefined) await", "if (false) await"], AGAINST),
  guard("lane: other methods", [' || method !== "POST"', ""], AGAINST),
  guard("lane: compressed requests", ['encoding === undefined || encoding === "identity"', "true"], AGAINST),
  guard("lane: longest timeout", [" && timeoutMs <= MAX_TIMEOUT_MS", ""], AGAINST),
  guard("lane: compressed flag", [" || chunk[0] !== 0", ""], AGAINST),
  guard("lane: size that is told", [" || length > maxBytes", ""], AGAINST),
  guard("lane: size that comes", ["chunks.length <= most && ", ""], AGAINST),
  guard("lane: one whole message", ["!isPrefixed || chunks.length === most", "true"], AGAINST),
  guard("lane: memory", [" && memory.reserve(chunk.length)", ""], "api/fast/lane"),
  guard("lane: gives way", ["if (!isGone(signal)) response.destroy();", ""], "api/fast/lane"),
  guard(
    "lane: gives way before it is read",
    ["if (signal.aborted) return Promise.resolve(undefined);", ""],
    "call/overload",
  ),
  guard("lane: late messages", ["performance.now() >= timesOutAt", "false"], AGAINST),
  guard("lane: late messages are told so", ["if (isLate) endTimeout(request, form);", ""], AGAINST),
  guard("lane: UTF-8", [">= 0x80) this.giveUp();", ">= 0x100) this.giveUp();"], "api/fast/decode-plain"),
  guard("lane: lengths", ["stop <= end ? stop : this.giveUp()", "stop"], "api/fast/decode-plain"),
];
