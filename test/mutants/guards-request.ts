// biome-ignore-all lint/suspicious/noTemplateCurlyInString: it is text of the source
import { type Guard, guard } from "./guard.js";

const HTTP1 = "http/hostile-http1";
const TRANSFER_CODING = "regress/transfer-coding";
const CLIENT_CONNECTIONS = "server/client-connections";

/** What a client may send, and who may send it. */
export const REQUEST_GUARDS: readonly Guard[] = [
  guard(
    "answers: nobody reads",
    ["isSending && nowMs - waiting.sinceMs > limits.writeTimeoutMs", "false"],
    "http/sweep",
  ),
  guard("answers: a slow reader stays", ["waiting.bytes = undefined;", "// Not seen."], "http/sweep"),
  guard(
    "answers: no reset is taken",
    ["if (stream.closed) sessions.get(stream.session as ServerHttp2Session)?.socket.destroy();\n  else ", ""],
    "http/sweep",
  ),
  guard("host check", ["if (problem !== undefined) return {", "if (false) return {"], HTTP1),
  guard("header count", ["if (rawHeaders.length > maxHeaders * 2) return TOO_MANY;", ""], HTTP1),
  guard("http version", ["if (httpVersionMajor !== spoken) return VERSION;", ""], HTTP1),
  guard("raw packet in faults", ["delete error.rawPacket;", ""], HTTP1),
  guard("connection limit", ["server.maxConnections = limits.maxConnections;", ""], HTTP1),
  guard(
    "origins of applications that are disabled",
    ["WHERE origin = :origin AND state = 'ACTIVE'", "WHERE origin = :origin"],
    "store/applications",
  ),
  guard(
    "origins that an application lists no more",
    ["yield* run(REMOVE_ORIGINS, { applicationId });", ""],
    "store/applications",
  ),
  guard(
    "one answer to a request that is found faulty late",
    ["if (isAnswered(exchange?.response)) return void socket.destroySoon();", ""],
    TRANSFER_CODING,
  ),
  guard(
    "transfer coding",
    ["spoken === 1 ? decideTransferCoding(rawHeaders) : undefined", "undefined"],
    TRANSFER_CODING,
  ),
  guard("connections of one client", ["if (count >= maxOfOne) {", "if (false) {"], CLIENT_CONNECTIONS),
  guard(
    "connections of one client: places come back",
    ['socket.once("close", () => free(client));', ""],
    CLIENT_CONNECTIONS,
  ),
  guard(
    "connections of one client: but for trusted proxies",
    [
      "handler: createRouter(await handlersFor(wiring, options), readiness), onFault: parts.log.fault, isTrustedProxy, limits",
      "handler: createRouter(await handlersFor(wiring, options), readiness), onFault: parts.log.fault, limits",
    ],
    CLIENT_CONNECTIONS,
  ),
  guard(
    "connections of one client: an IPv6 network is one",
    ["NETWORK_GROUPS = [0, 2, 4, 6]", "NETWORK_GROUPS = [0, 2, 4, 6, 8, 10, 12, 14]"],
    "http/client-network",
  ),
  guard("headers timeout", ["setTimeout(cut, timeoutMs)", "setTimeout(cut, 2 ** 30)"], "http/timeouts"),
  guard(
    "trusted proxies",
    ["forwarded === undefined || !isTrustedProxy(peer)", "forwarded === undefined"],
    "http/client-address",
  ),

  guard(
    "request size, JSON route",
    ["readBody(exchange.request, options.maxRequestBytes,", "readBody(exchange.request, 2 ** 40,"],
    "api/rest/request-limits",
  ),
  guard(
    "request size, end of body",
    ["if (length > maxBytes) reject(tooLarge(maxBytes));\n      else", ""],
    "api/rest/request-limits",
  ),
  guard(
    "request size, typed",
    ["readMaxBytes: options.maxRequestBytes,", "readMaxBytes: 0xffffffff,"],
    "api/rpc/grpc-js",
  ),
  guard("JSON depth and keys", ["validateJson(bytes, LIMITS)", "validateJson(bytes)"], "api/rest/description"),
  guard("UTF-8 check", ['if (verdict === "syntax" && !isUtf8(text))', "if (false)"], "api/rest/description"),
  guard(
    "duplicate url key",
    [
      "if (field === undefined) throw unknownField(member.key); if (fields.has(field))",
      "if (field === undefined) throw unknownField(member.key); if (false)",
    ],
    "api/rest/description",
  ),
  guard(
    "unknown field",
    [
      "if (field === undefined) throw unknownField",
      "if (field === undefined) continue;\n    if (false) throw unknownField",
    ],
    "api/rest/description",
  ),
  guard(
    "duplicate query parameter",
    ["if (field === undefined) continue; if (fields.has(field))", "if (field === undefined) continue; if (false)"],
    "api/rest/query",
  ),
  guard(
    "length of ids",
    [
      "if (value.length > maxLength) { throw formatError(`${field} is longer",
      "if (false) { throw formatError(`${field} is longer",
    ],
    "api/rest/query",
  ),
  guard("lone surrogates in ids", ["if (!value.isWellFormed())", "if (false)"], "applications/caller-ids"),

  guard("wrong private key", ["!timingSafeEqual(hashPrivateKey(privateKey), hash)", "false"], "applications/caller"),
  guard(
    "wrong user signature",
    ["if (userSignature && !isSignature(userSignature, hash, userId))", "if (false)"],
    "applications/caller",
  ),
  guard(
    "missing proof",
    ['if (callerAuth === "PUBLIC_KEY") return undefined;', "if (true) return undefined;"],
    "applications/caller",
  ),
  guard("allowed origins", ["!allowedOrigins.includes(origin)", "false"], "applications/caller"),
  guard("allowed addresses", ["!matcherOf(allowedAddresses)(address)", "false"], "applications/caller"),
  guard("caller check is made", ["  requireCaller(options, application, call, decided);\n", ""], "protocols"),
  guard("disabled application", ['application?.state === "ACTIVE"', "application !== undefined"], "protocols"),

  guard("dropped headers", ["if (isDroppedHeader(meant)) continue;", ""], "providers/headers"),
  guard(
    "header name",
    [
      "function checkField(name: string, value: string): void { if (!NAME.test(name))",
      "function checkField(name: string, value: string): void { if (false)",
    ],
    "providers/headers",
  ),
  guard("header value", ["if (!VALUE.test(value))", "if (false)"], "providers/headers"),
  guard("header given twice", ["if (seen.has(meant))", "if (false)"], "providers/headers"),
  guard("headers, count", ["if (pairs.length > MAX_HEADERS)", "if (false)"], "providers/headers"),
  guard("headers, length", ["if (length > MAX_HEADER_LENGTH)", "if (false)"], "providers/headers"),

  guard("plain url: dot segments", ["(?:[\\w~!", "(?:[\\w.~!"], "providers/plain-url"),
  guard("plain url: origin", ["if (!origins.has(origin)) return undefined;", ""], "providers/plain-url"),
  guard("url: length", ['if (url.length > MAX_URL_LENGTH) return "too_long";', ""], "providers/egress"),
  guard("url: control", ['if (CONTROL.test(url)) return "control";', ""], "providers/egress"),
  guard("url: backslash", ['if (path.includes("\\\\")) return "backslash";', ""], "providers/egress"),
  guard("url: userinfo", [":\\/\\/([A-Za-z0-9.-]+)", ":\\/\\/(?:[^/?#]*@)?([A-Za-z0-9.-]+)"], "providers/egress"),
  guard("url: port", ["(?::([1-9][0-9]{0,4}))?(?=", "(?::[0-9]*([1-9][0-9]{0,4})?)?(?="], "providers/egress"),
  guard("url: end of host", ["(?=[/?#]|$)/", "/"], "providers/egress"),
  guard(
    "origin compare",
    ["provider.exactOrigins.has(origin)", "[...provider.exactOrigins].some((listed) => origin.startsWith(listed))"],
    "providers/egress",
  ),
  guard("parser agreement, origin", ["parsed?.origin === text.origin ?", "parsed !== undefined ?"], "providers/egress"),
  guard(
    "template pattern",
    ["new RegExp(`^https://${source}${end}$`)", "new RegExp(`^https://${source}${end}`)"],
    "providers/egress-template",
  ),
  guard(
    "template binding",
    ["if (stored === undefined || lowerCase(stored) !== value)", "if (false)"],
    "providers/egress-template",
  ),
  guard(
    "template binding is asked for",
    ["if (misfit !== undefined) { decided.egress", "if (false) { decided.egress"],
    "call/bound-origin",
  ),
  guard(
    "template binding of the row that a token came for",
    ["if (misfit !== undefined) throw misfit.refusal;", ""],
    "oauth/older-connections",
  ),
  guard(
    "http only for loopback",
    ['if (scheme === "http" && !(loopback && policy.allowLoopback))', "if (false)"],
    "providers/origin",
  ),
  guard("placeholders", ["if (!provider.urlPlaceholders.has(name)) return placeholder;", ""], "providers/placeholder"),
];
