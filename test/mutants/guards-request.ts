// biome-ignore-all lint/suspicious/noTemplateCurlyInString: it is text of the source
import { type Guard, guard } from "./guard.js";

const READ_BODY = "rest/read-body.ts";
const DESCRIPTION = "rest/description.ts";
const CALLER = "applications/caller.ts";
const EGRESS = "providers/egress.ts";
const PLAIN_URL = "providers/plain-url.ts";
const URL_TEXT = "providers/url-text.ts";
const HEADERS = "providers/headers.ts";
const HTTP1 = "listener/hostile-http1";
const TRANSFER_CODING = "regress/transfer-coding";
const CLIENT_PLACES = "listener/client-places.ts";
const CLIENT_CONNECTIONS = "server/client-connections";

/** What a client may send, and who may send it. */
export const REQUEST_GUARDS: readonly Guard[] = [
  guard(
    "answers: nobody reads",
    "listener/sweep.ts",
    ["isSending && nowMs - waiting.sinceMs > limits.writeTimeoutMs", "false"],
    "listener/sweep",
  ),
  guard(
    "answers: a slow reader stays",
    "listener/sweep.ts",
    ["waiting.bytes = undefined;", "// Not seen."],
    "listener/sweep",
  ),
  guard(
    "answers: no reset is taken",
    "listener/sweep.ts",
    ["if (stream.closed) sessions.get(stream.session as ServerHttp2Session)?.socket.destroy();\n  else ", ""],
    "listener/sweep",
  ),
  guard("host check", "listener/request.ts", ["if (problem !== undefined) return {", "if (false) return {"], HTTP1),
  guard("header count", "listener/request.ts", ["if (rawHeaders.length > maxHeaders * 2) return TOO_MANY;", ""], HTTP1),
  guard("http version", "listener/request.ts", ["if (httpVersionMajor !== spoken) return VERSION;", ""], HTTP1),
  guard("raw packet in faults", "listener/client-error.ts", ["delete error.rawPacket;", ""], HTTP1),
  guard("connection limit", "listener/http1.ts", ["server.maxConnections = limits.maxConnections;", ""], HTTP1),
  guard(
    "origins of applications that are disabled",
    "store/application-origins.ts",
    ["WHERE origin = ? AND state = 'ACTIVE'", "WHERE origin = ?"],
    "store/applications",
  ),
  guard(
    "origins that an application lists no more",
    "store/application-origins.ts",
    ["remove.run(applicationId);", ""],
    "store/applications",
  ),
  guard(
    "one answer to a request that is found faulty late",
    "listener/client-error.ts",
    ["if (isAnswered(exchange?.response)) return void socket.destroySoon();", ""],
    TRANSFER_CODING,
  ),
  guard(
    "transfer coding",
    "listener/request.ts",
    ["spoken === 1 ? decideTransferCoding(rawHeaders) : undefined", "undefined"],
    TRANSFER_CODING,
  ),
  guard("connections of one client", CLIENT_PLACES, ["if (count >= maxOfOne) {", "if (false) {"], CLIENT_CONNECTIONS),
  guard(
    "connections of one client: places come back",
    CLIENT_PLACES,
    ['socket.once("close", () => free(client));', ""],
    CLIENT_CONNECTIONS,
  ),
  guard(
    "connections of one client: but for trusted proxies",
    "server.ts",
    ["isTrustedProxy,\n    limits", "limits"],
    CLIENT_CONNECTIONS,
  ),
  guard(
    "connections of one client: an IPv6 network is one",
    "listener/client-network.ts",
    ["groups.slice(0, NETWORK_GROUPS)", "groups"],
    "listener/client-network",
  ),
  guard(
    "headers timeout",
    "listener/await-protocol.ts",
    ["setTimeout(cut, timeoutMs)", "setTimeout(cut, 2 ** 30)"],
    "listener/timeouts",
  ),
  guard(
    "trusted proxies",
    "listener/client-address.ts",
    ["forwarded === undefined || !isTrustedProxy(peer)", "forwarded === undefined"],
    "listener/client-address",
  ),

  guard(
    "request size, JSON route",
    "rest/read-call.ts",
    ["readBody(exchange.request, options.maxRequestBytes,", "readBody(exchange.request, 2 ** 40,"],
    "rest/request-limits",
  ),
  guard(
    "request size, end of body",
    READ_BODY,
    ["if (length > maxBytes) reject(tooLarge(maxBytes));\n      else", ""],
    "rest/request-limits",
  ),
  guard(
    "request size, typed",
    "rpc/handler.ts",
    ["readMaxBytes: options.maxRequestBytes,", "readMaxBytes: 0xffffffff,"],
    "rpc/grpc-js",
  ),
  guard("JSON depth and keys", DESCRIPTION, ["validateJson(bytes, LIMITS)", "validateJson(bytes)"], "rest/description"),
  guard("UTF-8 check", DESCRIPTION, ['if (verdict === "syntax" && !isUtf8(text))', "if (false)"], "rest/description"),
  guard("duplicate url key", DESCRIPTION, ["if (fields.has(field))", "if (false)"], "rest/description"),
  guard(
    "unknown field",
    DESCRIPTION,
    [
      "if (field === undefined) throw formatError(`${quoted(member.key)}",
      "if (field === undefined) continue;\n    if (false) throw formatError(`${quoted(member.key)}",
    ],
    "rest/description",
  ),
  guard("duplicate query parameter", "rest/query.ts", ["if (fields.has(field))", "if (false)"], "rest/query"),
  guard("length of ids", "rest/query.ts", ["if (value.length > MAX_ID_LENGTH)", "if (false)"], "rest/query"),
  guard(
    "lone surrogates in ids",
    "applications/caller-ids.ts",
    ["if (!value.isWellFormed())", "if (false)"],
    "applications/caller-ids",
  ),

  guard(
    "wrong private key",
    CALLER,
    ["!timingSafeEqual(hashPrivateKey(privateKey), hash)", "false"],
    "applications/caller",
  ),
  guard(
    "wrong user signature",
    CALLER,
    ["if (userSignature && !isSignature(userSignature, hash, userId))", "if (false)"],
    "applications/caller",
  ),
  guard(
    "missing proof",
    CALLER,
    ['if (callerAuth === "PUBLIC_KEY") return undefined;', "if (true) return undefined;"],
    "applications/caller",
  ),
  guard(
    "allowed origins",
    CALLER,
    ["!application.allowedOrigins.includes(proof.origin)", "false"],
    "applications/caller",
  ),
  guard("allowed addresses", CALLER, ["!matcherOf(allowedAddresses)(proof.address)", "false"], "applications/caller"),
  guard(
    "caller check is made",
    "relay/allowed-call.ts",
    ["requireAllowedCaller(options, application, call, trace);", ""],
    "protocols",
  ),
  guard(
    "disabled application",
    "applications/require-caller.ts",
    ['application?.state === "ACTIVE"', "application !== undefined"],
    "protocols",
  ),

  guard("dropped headers", HEADERS, ["if (isDroppedHeader(meant)) continue;", ""], "providers/headers"),
  guard("header name", HEADERS, ["if (!NAME.test(name))", "if (false)"], "providers/headers"),
  guard("header value", HEADERS, ["if (!VALUE.test(value))", "if (false)"], "providers/headers"),
  guard("header given twice", HEADERS, ["if (seen.has(meant))", "if (false)"], "providers/headers"),
  guard("headers, count", HEADERS, ["if (pairs.length > MAX_HEADERS)", "if (false)"], "providers/headers"),
  guard("headers, length", HEADERS, ["if (length > MAX_HEADER_LENGTH)", "if (false)"], "providers/headers"),

  guard("plain url: dot segments", PLAIN_URL, ["(?:[\\w~!", "(?:[\\w.~!"], "providers/plain-url"),
  guard("plain url: origin", PLAIN_URL, ["if (!origins.has(origin)) return undefined;", ""], "providers/plain-url"),
  guard("url: length", URL_TEXT, ['if (url.length > MAX_URL_LENGTH) return "too_long";', ""], "providers/egress"),
  guard("url: control", URL_TEXT, ['if (CONTROL.test(url)) return "control";', ""], "providers/egress"),
  guard("url: backslash", URL_TEXT, ['if (path.includes("\\\\")) return "backslash";', ""], "providers/egress"),
  guard(
    "url: userinfo",
    URL_TEXT,
    [":\\/\\/([A-Za-z0-9.-]+)", ":\\/\\/(?:[^/?#]*@)?([A-Za-z0-9.-]+)"],
    "providers/egress",
  ),
  guard("url: port", URL_TEXT, ["(?::([1-9][0-9]{0,4}))?(?=", "(?::[0-9]*([1-9][0-9]{0,4})?)?(?="], "providers/egress"),
  guard("url: end of host", URL_TEXT, ["(?=[/?#]|$)/", "/"], "providers/egress"),
  guard(
    "origin compare",
    EGRESS,
    ["provider.exactOrigins.has(origin)", "[...provider.exactOrigins].some((listed) => origin.startsWith(listed))"],
    "providers/egress",
  ),
  guard(
    "parser agreement, origin",
    EGRESS,
    ["parsed?.origin === text.origin ?", "parsed !== undefined ?"],
    "providers/egress",
  ),
  guard(
    "template pattern",
    "providers/origin.ts",
    ["new RegExp(`^https://${source}$`)", "new RegExp(`^https://${source}`)"],
    "providers/egress-template",
  ),
  guard(
    "template binding",
    EGRESS,
    ["if (stored === undefined || asciiLowerCase(stored) !== value)", "if (false)"],
    "providers/egress-template",
  ),
  guard(
    "template binding is asked for",
    "relay/allowed-call.ts",
    ["requireBoundOrigin(egress, connection, trace);", ""],
    "relay/bound-origin",
  ),
  guard(
    "http only for loopback",
    "providers/origin.ts",
    ['if (scheme === "http" && !(loopback && policy.allowLoopback))', "if (false)"],
    "providers/origin",
  ),
  guard(
    "placeholders",
    "providers/placeholder.ts",
    ["if (!provider.urlPlaceholders.has(name)) return placeholder;", ""],
    "providers/placeholder",
  ),
];
