import { type Guard, guard } from "./guard.js";

const AGAINST = "api/fast/against-connect";

/** What the fast path in front of connect-node must not take, and must not lose. */
export const FAST_PATH_GUARDS: readonly Guard[] = [
  guard(
    "fast path: pages that may not call",
    [
      "const context: CallContext = { identity, surface, caller,",
      "const context: CallContext = { identity, surface, caller: { ...caller, origin: undefined },",
    ],
    AGAINST,
  ),
  guard(
    "fast path: pages that may read",
    ["if (request.headers.origin !== undefined) await", "if (false) await"],
    AGAINST,
  ),
  guard("fast path: other methods", [' || method !== "POST"', ""], AGAINST),
  guard("fast path: compressed requests", ['encoding === undefined || encoding === "identity"', "true"], AGAINST),
  guard("fast path: longest timeout", [" && timeoutMs <= MAX_TIMEOUT_MS", ""], AGAINST),
  guard("fast path: compressed flag", [" || chunk[0] !== 0", ""], AGAINST),
  guard(
    "fast path: size that is told",
    ["length > maxBytes ? 0 : PREFIX_BYTES + length", "PREFIX_BYTES + length"],
    AGAINST,
  ),
  guard("fast path: size that comes", ["chunks.length <= most && ", ""], AGAINST),
  guard("fast path: one whole message", ["!isPrefixed || chunks.length === most", "true"], AGAINST),
  guard("fast path: memory", [" && memory.reserve(chunk.length)", ""], "api/fast/handler"),
  guard("fast path: gives way", ["if (!isGone(signal)) response.destroy();", ""], "api/fast/handler"),
  guard(
    "fast path: gives way before it is read",
    ["if (signal.aborted) return Promise.resolve(undefined);", ""],
    "call/overload",
  ),
  guard("fast path: late messages", ["performance.now() >= timesOutAt", "false"], AGAINST),
  guard("fast path: late messages are told so", ["if (isLate) endTimeout(request, form);", ""], AGAINST),
  guard("fast path: UTF-8", [">= 0x80) this.giveUp();", ">= 0x100) this.giveUp();"], "api/fast/decode-plain"),
  guard("fast path: lengths", ["stop <= end ? stop : this.giveUp()", "stop"], "api/fast/decode-plain"),
];
