import { type Guard, guard } from "./guard.js";

/** What operators are shown, and what they may do from there. */
export const CONSOLE_GUARDS: readonly Guard[] = [
  guard("explaining counts no call", ["take: rateLimiter.peek", "take: rateLimiter.take"], "admin/explain"),
  guard(
    "performing is for operators",
    ["  CallService.method.explainCall,", "  ...CallService.methods,"],
    "admin/explain",
  ),
  guard(
    "explaining names the token of no row",
    ["{ access_token: MASK,", "{ access_token: allowed.connection.id,"],
    "admin/explain",
  ),
  guard(
    "a performed call is written down",
    [
      'await auditAction(administrationFor(options, context), "CallService.PerformCall", refusedResource({ call }));',
      "",
    ],
    "admin/explain",
  ),
  guard("console: no foreign scripts", ["\"script-src 'self'\"", '"script-src *"'], "console/files"),
  guard("console: no frame around it", ["  \"frame-ancestors 'none'\",\n", ""], "console/files"),
];
