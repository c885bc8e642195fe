import { type Guard, guard } from "./guard.js";

const HANDLER = "admin/rpc-handler.ts";
const PAGE = "admin/page.ts";

/** Who may administer, and what is written down of it. */
export const ADMIN_GUARDS: readonly Guard[] = [
  guard("admin: token first", HANDLER, ["if (!admission.isAdmitted)", "if (false)"], "admin/port"),
  guard(
    "admin: size of what begins a stream",
    HANDLER,
    ["{ ...NAMES_ONLY, maxTimeoutMs", "{ maxTimeoutMs"],
    "regress/tiny-chunks",
  ),
  guard(
    "admin: errors of a stream",
    "admin/translate-errors.ts",
    ["response.stream ? {", "false ? {"],
    "admin/call-records",
  ),
  guard("admin: no answer is kept", HANDLER, ['"cache-control", "no-store"', '"x-none", "x"'], "admin/port"),
  guard("admin: roles", HANDLER, ["requireRole(options)]", "]"], "admin/roles"),
  guard(
    "admin: tries of wrong tokens",
    "admin/admit.ts",
    ["if (waitSeconds > 0) return", "if (false) return"],
    "admin/port",
  ),
  guard(
    "admin: requests without a token are no tries",
    "admin/admit.ts",
    ["if (request.headers.authorization === undefined) return { isAdmitted: false, waitSeconds: 0 };", ""],
    "admin/port",
  ),
  guard(
    "admin: connections of one client",
    "admin-port.ts",
    [", maxClientConnections: 150", ""],
    "server/client-connections",
  ),
  guard("admin: bound of tries", "admin/attempts.ts", ["kept.size > MAX_KEPT", "false"], "admin/attempts"),
  guard(
    "admin: bound of audited refusals",
    "admin/require-role.ts",
    ["if (refusals.waitSeconds(name) === 0) {", "{"],
    "admin/roles",
  ),
  guard("admin: methods without a role", "admin/roles.ts", ['=== "read-only";', '!== "operator";'], "admin/roles"),
  guard(
    "admin: refusals are audited",
    "admin/require-role.ts",
    ["await writeDown(options, request, name);", ""],
    "admin/roles",
  ),
  guard("admin: bearer alone", "admin/authenticate.ts", ["/^Bearer +", "/^(?:Basic|Bearer) +"], "admin/token-file"),
  guard("admin: length of tokens", "admin/token-file.ts", ["(?=.{32,256}$)", ""], "admin/token-file"),
  guard(
    "admin: each token once",
    "admin/token-file.ts",
    ["if (tokens.has(key)) {", "if (false) {"],
    "admin/token-file",
  ),
  guard(
    "admin: token file in production",
    "admin/load-tokens.ts",
    ["!mustExist && !existsSync", "!existsSync"],
    "admin/token-file",
  ),
  guard(
    "admin: unknown fields of a mask",
    "admin/field-mask.ts",
    ["if (unknown !== undefined)", "if (false)"],
    "admin/applications",
  ),
  guard(
    "admin: etag",
    "change-options.ts",
    ["isCurrent !== undefined && !isCurrent(row)", "false"],
    "store/audit",
    "admin/applications",
  ),
  guard("admin: page of another request", PAGE, ["ofRequest === digest && ", ""], "admin/applications"),
  guard("admin: parts of a page's key", PAGE, [" && isKey)", ")"], "admin/applications", "admin/call-records"),
  guard(
    "admin: names of providers",
    "admin/named.ts",
    ["if (isProviderName(required(name, field)))", "if (true)"],
    "admin/oauth-clients",
  ),
  guard(
    "record: place beyond a block",
    "records/list-calls.ts",
    ["Math.min(at.index, own.length)", "at.index"],
    "admin/call-records",
  ),
  guard(
    "admin: largest page",
    PAGE,
    ["Math.min(pageSize || DEFAULT_SIZE, MAX_SIZE)", "pageSize || DEFAULT_SIZE"],
    "admin/connections",
  ),
  guard(
    "admin: no value of a wrong field",
    "admin/oauth-client-message.ts",
    ['"must be printable ASCII of at most 4096 characters"', "text"],
    "admin/oauth-clients",
  ),
  guard(
    "admin: no client that is of no use",
    "administration/oauth-client-problem.ts",
    ["if (oauth2?.tokenEndpoint !== undefined)", "if (true)"],
    "admin/oauth-clients",
  ),
  guard(
    "admin: keys in definitions",
    "admin/shown-provider.ts",
    ["[name, mayHoldKey(name) ? MASK : value]", "[name, value]"],
    "admin/providers",
  ),
  guard(
    "admin: keys in parameters of definitions",
    "admin/shown-provider.ts",
    ["isSensitiveField(name) && value ? MASK : value", "value"],
    "admin/providers",
  ),
  guard(
    "admin: keys in explained requests",
    "providers/key-header.ts",
    ["value === sent && mayHoldKey(name)", "false"],
    "admin/providers",
  ),
  guard("admin: parts of a resource", "administration/resource.ts", [".map(encodeURIComponent)", ""], "admin/roles"),
  guard(
    "audit: no change",
    "store/migration-5.ts",
    [
      "BEFORE UPDATE ON audit_records BEGIN\n  SELECT raise(ABORT",
      "BEFORE UPDATE ON audit_records BEGIN\n  SELECT raise(IGNORE",
    ],
    "store/audit",
  ),
  guard(
    "audit: no deletion",
    "store/migration-5.ts",
    ["BEFORE DELETE ON audit_records BEGIN", "BEFORE DELETE ON audit_records WHEN false BEGIN"],
    "store/audit",
  ),
  guard(
    "audit: with the change",
    "store/connections.ts",
    [
      '    enqueue("connection.deleted", key, now);\n    writeAudit(audit);',
      '    enqueue("connection.deleted", key, now);',
    ],
    "store/audit",
  ),
  guard(
    "audit: with the change, postgres",
    "store/postgres-applications.ts",
    ["  await writeAudit(queries, options.audit);\n", ""],
    "store/audit",
  ),
  guard(
    "audit: one change after the other",
    "store/postgres-oauth-clients.ts",
    ["if (!isUniqueViolation(error)) throw error;", "throw error;"],
    "store/audit",
  ),
  guard(
    "scan: behind the last",
    "store/connection-scan.ts",
    ["(user_id, provider_name) > (:user_start", "(user_id, provider_name) >= (:user_start"],
    "store/ranges",
  ),
  guard(
    "relay: never its own administration",
    "server.ts",
    ["adminListener === undefined ? [listener] : [listener, adminListener]", "[listener]"],
    "relay/self-call",
  ),
];
