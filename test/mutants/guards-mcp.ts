import { type Guard, guard } from "./guard.js";

/** What agents are served. */
export const MCP_GUARDS: readonly Guard[] = [
  guard(
    "mcp: a call token and nothing else",
    ["if (callToken === undefined || privateKeys.length > 0) throw noToken(privateKeys.length > 0);", ""],
    "api/mcp/admission",
  ),
  guard(
    "mcp: the token is judged before anything is read",
    ['if (decision.result === "allow") return { application, caller };', "return { application, caller };"],
    "api/mcp/admission",
  ),
  guard(
    "mcp: 403 where another token would not help",
    ['const isPlace = decision.rule === "origin" || decision.rule === "address";', "const isPlace = false;"],
    "api/mcp/admission",
  ),
  guard(
    "mcp: the largest message",
    ["Math.min(options.maxRequestBytes, MAX_BODY_BYTES)", "options.maxRequestBytes"],
    "api/mcp/hostile",
  ),
  guard(
    "mcp: one message of bounded depth and size",
    ['if (validateJson(json, CALL_JSON_LIMITS) !== "valid" || kindAt(json) !== "object") throw noMessage();', ""],
    "api/mcp/hostile",
  ),
  guard(
    "mcp: few members beside the arguments",
    ['if (validateJson(envelope, ENVELOPE_LIMITS) !== "valid") throw noMessage();', ""],
    "api/mcp/hostile",
  ),
  guard(
    "mcp: no name twice",
    ["if (byName.size === members.length) return byName;", "return byName;"],
    "api/mcp/hostile",
  ),
  guard("mcp: the beginning of a long text alone", ["startOf(text, maxBytes)", "text.concat()"], "api/mcp/tools"),
  guard(
    "mcp: no long bytes in base64",
    ["if (bytes.length * 4 <= maxBytes * 3)", "if (bytes.length >= 0)"],
    "api/mcp/tools",
  ),
  guard(
    "mcp: the origins of a private network",
    ["...(!allowPrivateNetwork && { apiOrigins:", "...({ apiOrigins:"],
    "api/mcp/tools",
  ),
  guard(
    "mcp: a token that may write is said to",
    [
      "rules?.every(({ methods }) => methods?.every((method) => SAFE_METHODS.includes(method)))",
      "rules?.every(() => true)",
    ],
    "api/mcp/tools",
  ),
  guard(
    "mcp: what a tool fails with is told by the table of reasons",
    ["return resultFromOutcome(options.relay.refuse(agent, error), options.maxAnswerBytes);", "throw error;"],
    "api/mcp/hostile",
  ),
];
