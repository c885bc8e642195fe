import { type Guard, guard } from "./guard.js";

/** Who may administer, and what is written down of it. */
export const ADMIN_GUARDS: readonly Guard[] = [
  guard(
    "admin: token first",
    [
      "    // Before a byte of the body is read.\n    const admission = await admit(request);\n    if (!admission.isAdmitted)",
      "    // Before a byte of the body is read.\n    const admission = await admit(request);\n    if (false)",
    ],
    "admin/port",
  ),
  guard(
    "admin: size of what begins a stream",
    ["{ ...NAMES_ONLY, maxTimeoutMs", "{ maxTimeoutMs"],
    "regress/tiny-chunks",
  ),
  guard("admin: errors of a stream", ["response.stream ? {", "false ? {"], "admin/call-records"),
  guard(
    "admin: no answer is kept",
    [
      '    // Some answers hold a secret, this once (as RFC 6749 section 5.1 asks of tokens).\n    response.setHeader("cache-control", "no-store"',
      '    // Some answers hold a secret, this once (as RFC 6749 section 5.1 asks of tokens).\n    response.setHeader("x-none", "x"',
    ],
    "admin/port",
  ),
  guard("admin: roles", ["requireRole(options)]", "]"], "admin/roles"),
  guard("admin: tries of wrong tokens", ["if (waitSeconds > 0) return", "if (false) return"], "admin/port"),
  guard(
    "admin: requests without a token are no tries",
    ["if (request.headers.authorization === undefined) return { isAdmitted: false, waitSeconds: 0 };", ""],
    "admin/port",
  ),
  guard("admin: connections of one client", [", maxClientConnections: 150", ""], "server/client-connections"),
  guard("admin: bound of tries", ["if (map.size > most)", "if (false)"], "admin/attempts"),
  guard("admin: bound of audited refusals", ["if (refusals.waitSeconds(name) === 0) {", "{"], "admin/roles"),
  guard(
    "admin: methods without a role",
    ["READ_ONLY.has(nameOf(method))", "method.parent !== undefined"],
    "admin/roles",
  ),
  guard("admin: refusals are audited", ["await writeDown(options, request, name);", ""], "admin/roles"),
  guard(
    "admin: bearer alone",
    ["const BEARER = /^Bearer +", "const BEARER = /^(?:Basic|Bearer) +"],
    "admin/token-file",
  ),
  guard("admin: length of tokens", ["(?=.{32,256}$)", ""], "admin/token-file"),
  guard("admin: each token once", ["if (tokens.has(key)) {", "if (false) {"], "admin/token-file"),
  guard(
    "admin: token file in production",
    [
      "): Promise<readonly AdminToken[]> { if (!mustExist && !existsSync",
      "): Promise<readonly AdminToken[]> { if (!existsSync",
    ],
    "admin/token-file",
  ),
  guard(
    "admin: unknown fields of a mask",
    [
      "const unknown = named.find((path) => !writable.some((field) => field === path)); if (unknown !== undefined)",
      "const unknown = named.find((path) => !writable.some((field) => field === path)); if (false)",
    ],
    "admin/applications",
  ),
  guard("admin: etag", ["isCurrent !== undefined && !isCurrent(row)", "false"], "store/audit", "admin/applications"),
  guard("admin: page of another request", ["ofRequest === digest && ", ""], "admin/applications"),
  guard("admin: parts of a page's key", [" && isKey)", ")"], "admin/applications", "admin/call-records"),
  guard(
    "admin: names of providers",
    ['if (isProviderName(required(name, "provider_name")))', "if (true)"],
    "admin/oauth-clients",
  ),
  guard("record: place beyond a block", ["Math.min(at.index, own.length)", "at.index"], "admin/call-records"),
  guard(
    "admin: largest page",
    ["Math.min(pageSize || DEFAULT_SIZE, MAX_SIZE)", "pageSize || DEFAULT_SIZE"],
    "admin/connections",
  ),
  guard(
    "admin: no value of a wrong field",
    ['"must be printable ASCII of at most 4096 characters"', "text"],
    "admin/oauth-clients",
  ),
  guard(
    "admin: no client that is of no use",
    ["if (oauth2?.tokenEndpoint !== undefined || oauth1 !== undefined)", "if (true)"],
    "admin/oauth-clients",
  ),
  guard("admin: keys in definitions", ["[name, mayHoldKey(name) ? MASK : value]", "[name, value]"], "admin/providers"),
  guard(
    "admin: keys in parameters of definitions",
    ["isSensitiveField(name) && value ? MASK : value", "value"],
    "admin/providers",
  ),
  guard("admin: keys in explained requests", ["value === sent && mayHoldKey(name)", "false"], "admin/providers"),
  guard("admin: parts of a resource", [".map(encodeURIComponent)", ""], "admin/roles"),
  guard(
    "audit: no change",
    [
      "BEFORE UPDATE ON audit_records BEGIN\n  SELECT raise(ABORT",
      "BEFORE UPDATE ON audit_records BEGIN\n  SELECT raise(IGNORE",
    ],
    "store/audit",
  ),
  guard(
    "audit: no deletion",
    ["BEFORE DELETE ON audit_records BEGIN", "BEFORE DELETE ON audit_records WHEN false BEGIN"],
    "store/audit",
  ),
  guard(
    "audit: with the change",
    [
      'yield* enqueueEvent("connection.deleted", key, now); yield* writeAudit(audit);',
      'yield* enqueueEvent("connection.deleted", key, now);',
    ],
    "store/audit",
  ),
  guard(
    "audit: with the change of an application",
    [
      "if (patch.allowedOrigins !== undefined) yield* writeOrigins(current.id, patch.allowedOrigins); yield* writeAudit(options.audit);",
      "if (patch.allowedOrigins !== undefined) yield* writeOrigins(current.id, patch.allowedOrigins);",
    ],
    "store/audit",
  ),
  guard(
    "audit: one change after the other",
    ["if (!isUniqueViolation(error)) throw error;", "throw error;"],
    "store/audit",
  ),
  guard(
    "scan: behind the last",
    [
      "WHERE application_id = :application_id AND user_id < CAST(:user_end AS KEY) AND (user_id, provider_name) > (:user_start",
      "WHERE application_id = :application_id AND user_id < CAST(:user_end AS KEY) AND (user_id, provider_name) >= (:user_start",
    ],
    "store/ranges",
  ),
  guard(
    "relay: never its own administration",
    ["adminListener === undefined ? [listener] : [listener, adminListener]", "[listener]"],
    "call/self-call",
  ),
];
