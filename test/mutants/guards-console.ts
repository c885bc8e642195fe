import { type Guard, guard } from "./guard.js";

/** What operators are shown, and what they may do from there. */
export const CONSOLE_GUARDS: readonly Guard[] = [
  guard(
    "explaining counts no call",
    "relay/explain.ts",
    ["take: rateLimiter.peek", "take: rateLimiter.take"],
    "admin/explain",
  ),
  guard(
    "performing is for operators",
    "admin/roles.ts",
    ['performCall: "operator"', 'performCall: "read-only"'],
    "admin/explain",
  ),
  guard(
    "explaining names the token of no row",
    "relay/explain.ts",
    ["{ access_token: MASK,", "{ access_token: allowed.connection.id,"],
    "admin/explain",
  ),
  guard(
    "a performed call is written down",
    "admin/call-service.ts",
    ["      await writeDown(options, call, context);\n", ""],
    "admin/explain",
  ),
  guard(
    "console: no foreign scripts",
    "admin/console-handler.ts",
    ["\"script-src 'self'\"", '"script-src *"'],
    "console/files",
  ),
  guard(
    "console: no frame around it",
    "admin/console-handler.ts",
    ["  \"frame-ancestors 'none'\",\n", ""],
    "console/files",
  ),
];
