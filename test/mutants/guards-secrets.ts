// biome-ignore-all lint/suspicious/noTemplateCurlyInString: it is text of the source
import { type Guard, guard } from "./guard.js";

const SEAL_BLOB = "tokens/seal-blob.ts";
const CREDENTIAL = "providers/credential.ts";
const BUDGET = "relay/budget.ts";

/** Whose token is sent, how secrets are kept, what is told and logged. */
export const SECRET_GUARDS: readonly Guard[] = [
  guard("credential overwrite, header", CREDENTIAL, ["key === reserved || ", ""], "providers/credential"),
  guard(
    "credential overwrite, query",
    CREDENTIAL,
    [".filter((part) => parameterName(part) !== reserved)", ""],
    "providers/credential",
  ),
  guard("caller's Authorization", CREDENTIAL, ["NEVER_SENT.has(key) || ", ""], "providers/credential"),
  guard(
    "credential overwrite, encoded name",
    CREDENTIAL,
    ["return decoded.toLowerCase();", "return name.toLowerCase();"],
    "providers/credential",
  ),

  guard(
    "tenancy: application in the look-up",
    "store/connections.ts",
    [
      "WHERE application_id = ? AND user_id = ? AND provider_name = ?`)\n",
      "WHERE ? <> '' AND user_id = ? AND provider_name = ?`)\n",
    ],
    "store/connections",
  ),
  guard(
    "tenancy: user in the look-up",
    "store/connections.ts",
    [
      "WHERE application_id = ? AND user_id = ? AND provider_name = ?`)\n",
      "WHERE application_id = ? AND ? <> '' AND provider_name = ?`)\n",
    ],
    "store/connections",
  ),
  guard(
    "tenancy: application of the call",
    "relay/allowed-call.ts",
    [
      "{ applicationId: application.id, userId: call.userId,",
      "{ applicationId: (globalThis as never as { first: string }).first ??= application.id, userId: call.userId,",
    ],
    "tenancy",
  ),
  guard(
    "tenancy: delete",
    "store/connections.ts",
    [
      "DELETE FROM connections WHERE application_id = ? AND user_id = ? AND provider_name = ?",
      "DELETE FROM connections WHERE ? <> '' AND user_id = ? AND provider_name = ?",
    ],
    "store/tenancy",
  ),
  guard(
    "expired token",
    "tokens/renewal-need.ts",
    ['if (freshness === "ended") {', 'if (freshness === ("never" as string)) {'],
    "tokens/token-source",
  ),
  guard(
    "renewal: one at a time",
    "store/renewals.ts",
    ["isAhead(connection.leaseUntil, now, MAX_LEASE_MS)", "false"],
    "store/lease",
  ),
  guard(
    "refresh: an ended lease is left to its owner for a while",
    "store/renewals.ts",
    ["if (isOthers && row.lease_owner !== null) {", "if (false) {"],
    "store/lease",
  ),
  guard(
    "refresh: a process that lives is not taken for one that is gone",
    "store/spool.ts",
    ['db.exec("BEGIN EXCLUSIVE; COMMIT");', ""],
    "store/spool",
  ),
  guard(
    "renewal: compare and swap",
    "store/renewals.ts",
    [
      "updated_at = :now\n    WHERE id = :id AND version = :version`);",
      "updated_at = :now\n    WHERE id = :id AND :version > 0`);",
    ],
    "store/lease",
  ),
  guard(
    "renewal: a late answer never replaces a newer one",
    "tokens/late-answer.ts",
    [' && stateReason === "rotation_lost_suspected"', ""],
    "chaos/renewal-short",
  ),
  guard(
    "renewal: a late answer is proved before the connection lives again",
    "tokens/renewal.ts",
    [
      "return attempt(options, late, target, tokens.refreshToken);",
      'return (await connections.commitRenewal(late, renewed, now())) ? "renewed" : "lost";',
    ],
    "chaos/renewal-short",
  ),
  guard(
    "renewal: tokens of a connection that is gone are revoked",
    "tokens/renewal.ts",
    ["options.track(revokeOrphans(options, connection, tokens, target));", ""],
    "tokens/late-revocation",
  ),
  guard(
    "renewal: no revocation under a connection that was made again",
    "tokens/late-answer.ts",
    ['if (current === undefined) return "orphaned";', 'if (current?.id !== connection.id) return "orphaned";'],
    "tokens/late-revocation",
  ),
  guard(
    "expiry: a clock that jumps ends nothing",
    "tokens/expiry-sweep.ts",
    ["if (isJump) steadySince = monotonic;", ""],
    "tokens/expiry-sweep",
  ),
  guard(
    "expiry: a clock that was just looked at first ends nothing",
    "tokens/expiry-sweep.ts",
    ["return monotonic - steadySince >= MARGIN_MS;", "return true;"],
    "tokens/expiry-sweep",
  ),
  guard(
    "expiry: what can be renewed is not ended",
    "store/renewals.ts",
    ["WHERE state = 'ACTIVE' AND refresh_token IS NULL AND expires_at < ?", "WHERE expires_at < ?"],
    "store/lease",
  ),
  guard(
    "renewal: a refresh token of a malformed answer",
    "tokens/token-answer.ts",
    ['failed("unreadable", refreshTokenFrom(members) ?? refreshTokenFrom(whole ?? {}))', 'failed("unreadable")'],
    "tokens/token-answer",
  ),
  guard(
    "state of the connection",
    "tokens/usable.ts",
    ['if (state !== "ACTIVE") throw reauthorizationRequired();', ""],
    "tokens/token-source",
  ),

  guard(
    "associated data: application",
    SEAL_BLOB,
    ["table, column, applicationId, userId, providerName, keyId];", "table, column, userId, providerName, keyId];"],
    "tokens/seal",
  ),
  guard(
    "associated data: user",
    SEAL_BLOB,
    [
      "table, column, applicationId, userId, providerName, keyId];",
      "table, column, applicationId, providerName, keyId];",
    ],
    "tokens/seal",
  ),
  guard(
    "associated data: column",
    SEAL_BLOB,
    [
      "table, column, applicationId, userId, providerName, keyId];",
      "table, applicationId, userId, providerName, keyId];",
    ],
    "tokens/seal",
  ),
  guard(
    "associated data: lengths",
    SEAL_BLOB,
    ["data.writeUInt32BE(length, at);", "data.writeUInt32BE(0, at);"],
    "tokens/seal",
  ),
  guard("tag length", SEAL_BLOB, ["export const TAG_BYTES = 16;", "export const TAG_BYTES = 4;"], "tokens/seal"),
  guard("tag is checked", "tokens/seal.ts", ['throw new SealError("corrupt");\n      }', "}"], "tokens/seal"),
  guard(
    "a fresh IV",
    "tokens/seal.ts",
    ["const iv = randomBytes(IV_BYTES);", "const iv = Buffer.alloc(IV_BYTES);"],
    "tokens/seal",
  ),
  guard(
    "key mismatch",
    "store/verify-keys.ts",
    ["if (wrong !== undefined) {", "if (wrong === null) {"],
    "store/verify-keys",
  ),
  guard(
    "key missing",
    "store/verify-keys.ts",
    ["if (keyId === undefined) return;\n  throw", "if (true) return;\n  throw"],
    "store/verify-keys",
  ),
  guard("key mismatch is looked for at start", "parts.ts", ["await verifyKeys(store, sealer);", ""], "server-start"),
  guard(
    "no new key beside an old store",
    "parts.ts",
    ["config.keyFileMustExist || (await hasStore(config))", "config.keyFileMustExist"],
    "server-start",
  ),
  guard(
    "key file: mode 0600",
    "secret-file.ts",
    ['open(draft, "wx", 0o600)', 'open(draft, "wx", 0o644)'],
    "tokens/keyring",
  ),
  guard("key file: one at a time adds a key", "tokens/key-file-write.ts", ["await take(lock);", ""], "tokens/keyring"),
  guard(
    "key file: none that everybody reads in production",
    "config/warnings.ts",
    ["if (!config.keyFileMustExist) return [];", "return [];"],
    "cli/config",
  ),
  guard(
    "database: nothing is written into a file without a name",
    "store/sqlite-checks.ts",
    ["identity !== undefined && identityOf(name) !== identity", "identity === null"],
    "regress/store-health",
  ),
  guard(
    "database: no store behind a dangling link",
    "store/open-database.ts",
    ["if (isDanglingLink(file)) throw", "if (file === null) throw"],
    "store/open-database",
  ),
  guard("database: mode 0600", "store/open-database.ts", ["chmodSync(file, 0o600);", ""], "store/open-database"),
  guard(
    "database: deleted rows overwritten",
    "store/open-database.ts",
    ['["secure_delete", "ON", 1],', ""],
    "store/open-database",
  ),
  guard(
    "a secret prints itself",
    "tokens/secret.ts",
    ["toJSON(): string {\n    return REDACTED;", "toJSON(): string {\n    return this.#value;"],
    "tokens/secret",
  ),

  guard("budget: bytes", BUDGET, ["while (!this.bytes.hasRoom(bytes)) {", "while (false) {"], "relay/budget"),
  guard("budget: calls", BUDGET, [" || !account.hasPlace(party)) return false;", ") return false;"], "relay/budget"),
  guard(
    "budget: slow requests give way",
    BUDGET,
    ["if (reading.size >= this.#maxReading &&", "if (false &&"],
    "relay/budget",
  ),
  guard(
    "budget: a share of the memory",
    BUDGET,
    ["(isWithin ? this.#runningVictim(wanted) : undefined)", "undefined"],
    "regress/unread-answers",
  ),
  guard(
    "budget: a share of the places",
    BUDGET,
    ["this.places.hasRoom(1) || this.places.isWithinShare(party.places, 1)", "this.places.hasRoom(1)"],
    "regress/unread-answers",
  ),
  guard(
    "budget: no more than a share of the places",
    "relay/allowed-call.ts",
    ["if (!call.memory.belongTo(application.id)) throw overloaded();", "call.memory.belongTo(application.id);"],
    "regress/unread-answers",
  ),
  guard("budget: stalled requests give way", BUDGET, ["    share.evict();", ""], "relay/budget"),
  guard(
    "budget: a call is asked for its place",
    "rest/read-call.ts",
    ["if (!memory.begin()) throw overloaded();", ""],
    "relay/overload",
  ),
  guard(
    "budget: request bytes are counted",
    "rest/read-body.ts",
    ["else if (memory.reserve(chunk.length))", "else if (true)"],
    "relay/overload",
  ),
  guard("budget: given back", "listener/response-signal.ts", ["    held.release();", ""], "relay/overload"),
  guard(
    "budget: answer bytes are counted",
    "upstream/whole-exchange.ts",
    ["if (this.#memory?.reserve(COPIES * chunk.length) === false)", "if (false)"],
    "relay/overload",
  ),
  guard(
    "chunks are put together",
    "chunks.ts",
    ["if (loose.length < MAX_LOOSE) return;", "if (true) return;"],
    "regress/tiny-chunks",
  ),
  guard(
    "chunks of a message in one piece",
    "rpc/one-message.ts",
    ["    chunks.push(chunk);\n", "    yield chunk;\n    continue;\n"],
    "regress/tiny-chunks",
  ),
  guard(
    "rate limits",
    "relay/allowed-call.ts",
    ["if (waitSeconds === 0) return;", "if (true) return;"],
    "relay/rate-limit",
  ),

  guard(
    "error text of a fault",
    "relay/outcome.ts",
    ['"The relay failed. Try again, and give the operator this call\'s callId."', "String(error)"],
    "relay/outcome",
  ),
  guard(
    "error text of the JSON parser",
    "rpc/adapter.ts",
    ["await withDecodeError(withAllow(universal, handler))", "withAllow(universal, handler)"],
    "rpc/protocol-edges",
  ),
  guard(
    "error text of the JSON parser, at the end of a stream",
    "rpc/invalid-argument.ts",
    ["body: withEndStreamError(body)", "body"],
    "regress/decode-error-quotation",
  ),
  guard(
    "error text of the JSON parser, over gRPC",
    "rpc/invalid-argument.ts",
    ["body: withGrpcError(body, trailer)", "body"],
    "regress/decode-error-quotation",
  ),
  guard(
    "error text of the JSON parser, over gRPC-Web",
    "rpc/invalid-argument.ts",
    ["body: withGrpcWebError(body)", "body"],
    "regress/decode-error-quotation",
  ),
  guard(
    "error text of the JSON parser, names alone",
    "json/message-fault.ts",
    ["([a-z]+(?:_[a-z]+|[A-Z][a-z]+)*)", "(.+)"],
    "admin/port",
    "regress/decode-error-quotation",
  ),
  guard(
    "log: errors by class and code",
    "telemetry/log.ts",
    ["class: error.name,", "class: `${error.name} ${error.message}`,"],
    "telemetry/log",
  ),
  guard("log: an allow-list", "relay/trace.ts", ["surface: origin.surface,", "...origin,"], "relay/trace"),
  guard(
    "settings: loopback only on loopback",
    "combination-problems.ts",
    ["if (!allowLoopback || isLoopbackHost(host)) return [];", "return [];"],
    "config",
  ),
  guard(
    "settings: dangerous flags",
    "runtime-problems.ts",
    ['if (env["NODE_TLS_REJECT_UNAUTHORIZED"] === "0")', "if (false)"],
    "config",
  ),
];
