// biome-ignore-all lint/suspicious/noTemplateCurlyInString: it is text of the source
import { type Guard, guard } from "./guard.js";

/** Whose token is sent, how secrets are kept, what is told and logged. */
export const SECRET_GUARDS: readonly Guard[] = [
  guard("credential overwrite, header", ["reserved.includes(key) || ", ""], "providers/credential"),
  guard(
    "credential overwrite, query",
    [".filter((part) => parameterName(part) !== reserved)", ""],
    "providers/credential",
  ),
  guard("caller's Authorization", ["NEVER_SENT.has(key) || ", ""], "providers/credential"),
  guard(
    "credential overwrite, encoded name",
    ["return decoded.toLowerCase();", "return name.toLowerCase();"],
    "providers/credential",
  ),

  guard("credential of another kind", ["  requireKind(provider, connection);\n", ""], "oauth/key-connections"),
  guard(
    "whole of Basic, which base64 hides",
    ["if (filled !== undefined && isBasic(place)) all.push(new Secret(filled.plain));", ""],
    "oauth/key-connections",
  ),
  guard(
    "client credentials: a refresh token that comes all the same",
    ["tokens: { ...verdict.tokens, refreshToken: undefined } };", "tokens: verdict.tokens };"],
    "oauth/client-credentials",
  ),
  guard(
    "client credentials: no secret among tokens to revoke",
    ["server.grant === undefined ? connection : { ...connection, refreshToken: undefined }", "connection"],
    "oauth/client-credentials",
  ),
  guard(
    "row of another kind",
    ["return tokenType === undefined || isOfKind({ tokenType }, kind);", "return true;"],
    "oauth/client-credentials",
  ),
  guard(
    "signing key in a request",
    ["withoutKey({ ...server.texts, ...revealed(secrets) })", "({ ...server.texts, ...revealed(secrets) })"],
    "oauth/jwt-bearer",
  ),
  guard("work of opening a key", ["return roundsOf(der) <= MAX_ROUNDS", "return true"], "oauth/jwt-bearer"),
  guard(
    "key in a credential",
    ['if (kind === "jwt_bearer") for (const name of Object.values(KEY_VALUES)) known.delete(name);', ""],
    "providers/definition-values",
  ),
  guard("line breaks in a value", ["if (CONTROL.test(text) || ", "if ("], "oauth/key-connections"),

  guard(
    "tenancy: application in the look-up",
    [
      "SELECT ${CONNECTION_READ} FROM connections WHERE application_id = :application_id AND user_id = :user_id AND provider_name",
      "SELECT ${CONNECTION_READ} FROM connections WHERE :application_id <> '' AND user_id = :user_id AND provider_name",
    ],
    "store/connections",
  ),
  guard(
    "tenancy: user in the look-up",
    [
      "SELECT ${CONNECTION_READ} FROM connections WHERE application_id = :application_id AND user_id = :user_id AND provider_name",
      "SELECT ${CONNECTION_READ} FROM connections WHERE application_id = :application_id AND CAST(:user_id AS KEY) IS NOT NULL AND provider_name",
    ],
    "store/connections",
  ),
  guard(
    "tenancy: application of the call",
    [
      "{ applicationId: application.id, userId: call.userId,",
      "{ applicationId: (globalThis as never as { first: string }).first ??= application.id, userId: call.userId,",
    ],
    "tenancy",
  ),
  guard(
    "tenancy: delete",
    [
      "DELETE FROM connections WHERE application_id = :application_id",
      "DELETE FROM connections WHERE :application_id <> ''",
    ],
    "store/tenancy",
  ),
  guard(
    "expired token",
    [
      'if (freshness === "ended" && connection.refreshToken === undefined) {',
      'if (freshness === ("never" as string)) {',
    ],
    "oauth/token-source",
  ),
  guard("refresh: for calls while it stops", ["await calls;", ""], "regress/refresh-while-stopping"),
  guard(
    "refresh: none beside calls while it stops",
    ["if (!isStopping) refresh(connection, cause)", "refresh(connection, cause)"],
    "regress/refresh-while-stopping",
  ),
  guard(
    "refresh: none at the end of a stop",
    ["closing.abort(), graceMs / 2", "closing.abort(), graceMs"],
    "regress/refresh-while-stopping",
  ),
  guard("refresh: one at a time", ["if (isOthers && row.isLeased) return undefined;", ""], "store/lease"),
  guard(
    "refresh: an ended lease is left to its owner for a while",
    ["if (isOthers && row.leaseOwner !== undefined) {", "if (false) {"],
    "store/lease",
  ),
  guard(
    "refresh: a process that lives is not taken for one that is gone",
    ['db.exec("BEGIN EXCLUSIVE; COMMIT");', ""],
    "store/spool",
  ),
  guard(
    "refresh: a late answer never replaces a newer one",
    [
      "refreshed_at = :now, updated_at = :now WHERE id = :id AND version <= CAST(:version AS BIGINT)`",
      "refreshed_at = :now, updated_at = :now WHERE id = :id AND CAST(:version AS BIGINT) > 0`",
    ],
    "store/lease",
  ),
  guard(
    "refresh: a late refresh token is tried where the connection was given up",
    [
      "lease_until = CASE WHEN state = 'ACTIVE' OR lease_owner IS NOT NULL THEN lease_until ELSE :clock END",
      "lease_until = lease_until",
    ],
    "store/lease",
  ),
  guard(
    "refresh: a late answer is kept beside the row that was first alone",
    [
      "END WHERE id = :id AND (version = CAST(:version AS BIGINT) + 1 OR state <> 'ACTIVE')`",
      "END WHERE id = :id AND version > CAST(:version AS BIGINT)`",
    ],
    "store/lease",
  ),
  guard(
    "refresh: the spent token of a connection that was given up is not sent",
    [
      'if (connection.state !== "ACTIVE" && previousRefreshToken !== undefined)',
      "if (false && previousRefreshToken !== undefined)",
    ],
    "refresh-model/model",
  ),
  guard(
    "refresh: a process that stood still does not send what another one has sent",
    ["if (this.#mayBegin?.() === false) {", "if (false) {"],
    "upstream/abort",
  ),
  guard(
    "refresh: nobody ends a connection whose lease another process has",
    [
      "AND (CAST(:owner AS TEXT) IS NULL OR lease_owner = CAST(:owner AS TEXT))",
      "AND (CAST(:owner AS TEXT) IS NULL OR lease_owner IS NULL OR true)",
    ],
    "store/lease",
  ),
  guard(
    "refresh: leases stay with a spool that holds an answer",
    ["const isDone = isEmpty() &&", "const isDone ="],
    "store/spool",
  ),
  guard(
    "refresh: tokens of a connection that is gone are revoked",
    ['if (outcome === "gone") options.track(revokeOrphans(options, connection, tokens, target));', ""],
    "oauth/late-revocation",
  ),
  guard(
    "refresh: no revocation under a connection that was made again",
    [
      'yield* first(STORED, connection); if (current === undefined) return "gone";',
      'yield* first(STORED, connection); if (current?.id !== id) return "gone";',
    ],
    "oauth/late-revocation",
  ),
  guard("expiry: a clock that jumps ends nothing", ["if (isJump) steadySince = monotonic;", ""], "oauth/expiry-sweep"),
  guard(
    "expiry: a clock that was just looked at first ends nothing",
    ["return monotonic - steadySince >= STEADY_MS;", "return true;"],
    "oauth/expiry-sweep",
  ),
  guard(
    "expiry: what can be refreshed is not ended",
    ["WHERE state = 'ACTIVE' AND refresh_token IS NULL AND expires_at < CAST", "WHERE expires_at < CAST"],
    "store/lease",
  ),
  guard(
    "refresh: a refresh token of a malformed answer",
    [
      "const refreshToken = refreshTokenFrom(members) ?? refreshTokenFrom(whole ?? {});",
      "const refreshToken = undefined as Secret | undefined;",
    ],
    "oauth/token-answer",
  ),
  guard(
    "refresh: once for a call",
    ["if (used.connection !== allowed.connection) tokens.noteRefusedAgain(used.connection);", ""],
    "oauth/refresh",
  ),
  guard(
    "state of the connection",
    ['if (state !== "ACTIVE") throw reauthorizationRequired();', ""],
    "oauth/token-source",
  ),

  guard(
    "associated data: application",
    ["table, column, applicationId, userId, providerName, keyId];", "table, column, userId, providerName, keyId];"],
    "sealing/seal",
  ),
  guard(
    "associated data: user",
    [
      "table, column, applicationId, userId, providerName, keyId];",
      "table, column, applicationId, providerName, keyId];",
    ],
    "sealing/seal",
  ),
  guard(
    "associated data: column",
    [
      "table, column, applicationId, userId, providerName, keyId];",
      "table, applicationId, userId, providerName, keyId];",
    ],
    "sealing/seal",
  ),
  guard("associated data: lengths", ["data.writeUInt32BE(length, at);", "data.writeUInt32BE(0, at);"], "sealing/seal"),
  guard("tag length", ["const TAG_BYTES = 16;", "const TAG_BYTES = 4;"], "sealing/seal"),
  guard("tag is checked", ['throw new SealError("corrupt");\n      }', "}"], "sealing/seal"),
  guard("a fresh IV", ["const iv = randomBytes(IV_BYTES);", "const iv = Buffer.alloc(IV_BYTES);"], "sealing/seal"),
  guard(
    "key mismatch",
    [
      'const wrong = judged.find(({ verdict }) => verdict === "corrupt"); if (wrong !== undefined) {',
      'const wrong = judged.find(({ verdict }) => verdict === "corrupt"); if (wrong === null) {',
    ],
    "store/verify-keys",
  ),
  guard(
    "key missing",
    ["if (keyId === undefined) return;\n  throw", "if (true) return;\n  throw"],
    "store/verify-keys",
  ),
  guard(
    "key mismatch is looked for at start",
    [
      "metrics?.addSource(() => healthMetrics(store.health)); await verifyKeys(store, sealer);",
      "metrics?.addSource(() => healthMetrics(store.health));",
    ],
    "app/server-start",
  ),
  guard(
    "no new key beside an old store",
    ["config.keyFileMustExist || (await hasStore(config))", "config.keyFileMustExist"],
    "app/server-start",
  ),
  guard("key file: mode 0600", ['openSync(draft, "wx", 0o600)', 'openSync(draft, "wx", 0o644)'], "sealing/keyring"),
  guard("key file: one at a time adds a key", ["await take(lock);", ""], "sealing/keyring"),
  guard(
    "key file: none that everybody reads in production",
    ["if (!config.keyFileMustExist) return [];", "return [];"],
    "cli/config",
  ),
  guard(
    "database: nothing is written into a file without a name",
    ["identity !== undefined && identityOf(name) !== identity", "identity === null"],
    "regress/store-health",
  ),
  guard(
    "database: no store behind a dangling link",
    ["if (isDanglingLink(file)) throw", "if (file === null) throw"],
    "store/open-database",
  ),
  guard("database: mode 0600", ["chmodSync(file, 0o600);", ""], "store/open-database"),
  guard("database: deleted rows overwritten", ['["secure_delete", "ON", 1],', ""], "store/open-database"),
  guard(
    "a secret prints itself",
    ["toJSON(): string {\n    return REDACTED;", "toJSON(): string {\n    return this.#value;"],
    "sealing/secret",
  ),

  guard("budget: bytes", ["while (!this.bytes.hasRoom(bytes)) {", "while (false) {"], "call/budget"),
  guard("budget: calls", [" || !account.hasPlace(party)) return false;", ") return false;"], "call/budget"),
  guard("budget: slow requests give way", ["if (reading.size >= this.#maxReading &&", "if (false &&"], "call/budget"),
  guard(
    "budget: a share of the memory",
    ["(isWithin ? this.#runningVictim(wanted) : undefined)", "undefined"],
    "regress/unread-answers",
  ),
  guard(
    "budget: a share of the places",
    ["this.places.isOpenTo(party.places)", "this.places.hasRoom(1)"],
    "regress/unread-answers",
  ),
  guard(
    "origin: a share of the places",
    ["if (!this.#places.isOpenTo(party.places)) return false;", "if (!this.#places.hasRoom(1)) return false;"],
    "regress/origin-shares",
  ),
  guard(
    "origin: large answers in one turn",
    ["if (this.#left > 0) return true;", "return true;"],
    "regress/origin-shares",
  ),
  guard(
    "pipelining: one in a turn",
    ["waiting.shift()?.();", "for (const each of waiting.splice(0)) each();"],
    "regress/pipelining",
  ),
  guard("pipelining: read no further", ['socket.emit("pause");', ""], "regress/pipelining"),
  guard(
    "pipelining: a packet in a turn when too many wait",
    ["return holdAll(connections);", "return;"],
    "regress/pipelining",
  ),
  guard(
    "pipelining: a new connection in a turn when too many wait",
    ["if (connections.held !== undefined) setImmediate(acceptInTurn, socket);\n    else if", "if"],
    "regress/pipelining",
  ),
  guard(
    "pipelining: those that have gone count no more",
    ["connections.queued -= exchange.queued;", ""],
    "regress/pipelining",
  ),
  guard("pipelining: behind the last request", ["return discardAll(req.socket);", "return;"], "regress/pipelining"),
  guard(
    "origin: whose turn it is",
    ["if (party.running < (next as Party).running) next = party;", ""],
    "regress/origin-shares",
  ),
  guard(
    "budget: no more than a share of the places",
    ["if (!call.memory.belongTo(application.id)) throw overloaded();", "call.memory.belongTo(application.id);"],
    "regress/unread-answers",
  ),
  guard("budget: stalled requests give way", ["    share.evict();", ""], "call/budget"),
  guard(
    "budget: a call is asked for its place",
    [
      "const body = await readBody(exchange.request, options.maxRequestBytes, memory, signal); if (!memory.begin()) throw overloaded();",
      "const body = await readBody(exchange.request, options.maxRequestBytes, memory, signal);",
    ],
    "call/overload",
  ),
  guard(
    "budget: request bytes are counted",
    ["else if (room.reserve(chunk.length))", "else if (true)"],
    "call/overload",
  ),
  guard("budget: given back", ["    held.release();", ""], "call/overload"),
  guard(
    "budget: answer bytes are counted",
    ["if (this.memory?.reserve(COPIES * chunk.length) === false)", "if (false)"],
    "call/overload",
  ),
  guard(
    "chunks are put together",
    ["if (loose.length < MAX_LOOSE) return;", "if (true) return;"],
    "regress/tiny-chunks",
  ),
  guard(
    "chunks of a message in one piece",
    [
      "for await (const chunk of body) { chunks.push(chunk);",
      "for await (const chunk of body) { yield chunk; continue;",
    ],
    "regress/tiny-chunks",
  ),
  guard(
    "rate limits",
    [
      "const waitSeconds = await rateLimiter.take(key, callsPerMinute); if (waitSeconds === 0) return;",
      "const waitSeconds = await rateLimiter.take(key, callsPerMinute); if (true) return;",
    ],
    "call/rate-limit",
  ),

  guard(
    "error text of a fault",
    ['"The relay failed. Try again, and give the operator this call\'s callId."', "String(error)"],
    "call/outcome",
  ),
  guard(
    "error text of the JSON parser",
    ["await withDecodeError(withAllow(universal, handler))", "withAllow(universal, handler)"],
    "api/rpc/protocol-edges",
  ),
  guard(
    "error text of the JSON parser, at the end of a stream",
    ["body: withEndStreamError(body)", "body"],
    "regress/decode-error-quotation",
  ),
  guard(
    "error text of the JSON parser, over gRPC",
    ["body: withGrpcError(body, trailer)", "body"],
    "regress/decode-error-quotation",
  ),
  guard(
    "error text of the JSON parser, over gRPC-Web",
    ["body: withGrpcWebError(body)", "body"],
    "regress/decode-error-quotation",
  ),
  guard(
    "error text of the JSON parser, names alone",
    ["([a-z]+(?:_[a-z]+|[A-Z][a-z]+)*)", "(.+)"],
    "admin/port",
    "regress/decode-error-quotation",
  ),
  guard(
    "log: errors by class and code",
    ["class: error.name,", "class: `${error.name} ${error.message}`,"],
    "telemetry/log",
  ),
  guard(
    "log: an allow-list",
    [
      "traceId: trace.spans?.traceId ?? origin.traceContext?.traceId, surface: origin.surface,",
      "traceId: trace.spans?.traceId ?? origin.traceContext?.traceId, ...origin,",
    ],
    "call/trace",
  ),
  guard(
    "settings: loopback only on loopback",
    ["if (!allowLoopback || isLoopbackHost(host)) return [];", "return [];"],
    "config/config",
  ),
  guard(
    "settings: dangerous flags",
    ['if (env["NODE_TLS_REJECT_UNAUTHORIZED"] === "0")', "if (false)"],
    "config/config",
  ),
];
