import { type Guard, guard } from "./guard.js";

const HEAD = "lane/head.ts";
const READ = "lane/read-message.ts";
const LANE = "lane/lane.ts";
const AGAINST = "lane/against-connect";

/** What the lane in front of connect-node must not take, and must not lose. */
export const LANE_GUARDS: readonly Guard[] = [
  guard(
    "lane: pages that may not call",
    LANE,
    ["    caller,\n", "    caller: { ...caller, origin: undefined },\n"],
    AGAINST,
  ),
  guard("lane: pages that may read", LANE, ["if (origin !== undefined) await", "if (false) await"], AGAINST),
  guard("lane: other methods", HEAD, [' || method !== "POST"', ""], AGAINST),
  guard("lane: compressed requests", HEAD, ['encoding === undefined || encoding === "identity"', "true"], AGAINST),
  guard("lane: longest timeout", "lane/timeout.ts", [" && timeoutMs <= MAX_TIMEOUT_MS", ""], AGAINST),
  guard("lane: compressed flag", "lane/grpc-prefix.ts", [" || chunk[0] !== 0", ""], AGAINST),
  guard("lane: size that is told", READ, [" || length > maxBytes", ""], AGAINST),
  guard("lane: size that comes", READ, ["chunks.length <= most && ", ""], AGAINST),
  guard("lane: one whole message", READ, ["!isPrefixed || chunks.length === most", "true"], AGAINST),
  guard("lane: memory", READ, [" && memory.reserve(chunk.length)", ""], "lane/lane"),
  guard("lane: gives way", LANE, ["if (!isGone(signal)) response.destroy();", ""], "lane/lane"),
  guard("lane: late messages", LANE, ["performance.now() >= timesOutAt", "false"], AGAINST),
  guard("lane: late messages are told so", LANE, ["if (isLate) endTimeout(request, form);", ""], AGAINST),
  guard(
    "lane: UTF-8",
    "lane/plain-input.ts",
    [">= 0x80) this.giveUp();", ">= 0x100) this.giveUp();"],
    "lane/decode-plain",
  ),
  guard("lane: lengths", "lane/plain-input.ts", ["stop <= end ? stop : this.giveUp()", "stop"], "lane/decode-plain"),
];
