// biome-ignore-all lint/suspicious/noTemplateCurlyInString: it is text of the source
import { type Guard, guard } from "./guard.js";

const EXCHANGE = "upstream/exchange.ts";
const WHOLE = "upstream/whole-exchange.ts";
const DIAL = "upstream/dial";
const ANSWERS = "upstream/answers";
const REDACT = "telemetry/redact.ts";

/** Where a request may go, and what may come back. */
export const PROVIDER_GUARDS: readonly Guard[] = [
  guard(
    "lookup check",
    "upstream/lookup.ts",
    ['if (result === "deny") throw new AddressRefusedError(rule);', ""],
    "upstream/lookup",
  ),
  guard("literal address check", "upstream/connector.ts", ['if (decision?.result !== "deny")', "if (true)"], DIAL),
  guard(
    "private addresses",
    "upstream/address.ts",
    ['if (rule === "private") return policy.allowPrivateNetwork;', 'if (rule === "private") return true;'],
    "upstream/address",
  ),
  guard(
    "loopback addresses",
    "upstream/address.ts",
    ['if (rule === "loopback") return policy.allowLoopback;', 'if (rule === "loopback") return true;'],
    "upstream/address",
  ),
  guard(
    "metadata addresses",
    "upstream/address.ts",
    ['...ranges("metadata",', '...[].concat("metadata",'],
    "upstream/address",
  ),
  guard(
    "cleartext only to loopback",
    "upstream/dial.ts",
    ['if (target.protocol !== "https:" && decision.rule !== "loopback")', "if (false)"],
    DIAL,
  ),
  guard(
    "relay dials itself",
    "upstream/dial.ts",
    ["return isSelf(address, target.port, policy.selfAddresses()) ?", "return false ?"],
    DIAL,
  ),
  guard("relay is told where it listens", "server.ts", ["parts.selfAddresses.push(", "void ("], "relay/self-call"),
  guard(
    "certificate check",
    "upstream/connector.ts",
    ["rejectUnauthorized: true", "rejectUnauthorized: false"],
    "upstream/tls",
  ),

  guard("deadline", EXCHANGE, ["exchange.expire();", ""], "upstream/abort"),
  guard(
    "caller gone",
    "listener/response-signal.ts",
    ["if (this.#response.writableEnded) return;", "if (true) return;"],
    "rest/request-limits",
  ),
  guard(
    "poll phase before reuse (P22)",
    "upstream/pool.ts",
    ["setImmediate(this.#onCheckPhase);", "this.#onCheckPhase();"],
    "upstream/reuse",
  ),
  guard(
    "unread answer ends the socket",
    "upstream/pool.ts",
    ["if (!isWhole || this.#isClosed", "if (this.#isClosed"],
    "upstream/reuse",
    "upstream/abort",
  ),
  guard(
    "rest before reuse",
    "upstream/pool.ts",
    ["if (lane.restsUntil > now) return;", ""],
    "regress/late-second-answer",
  ),
  guard(
    "no reuse after a stray answer",
    "upstream/pool.ts",
    ["|| now < this.#distrustedUntil", ""],
    "regress/late-second-answer",
  ),
  guard(
    "a POST is not sent again",
    EXCHANGE,
    ["&& IDEMPOTENT.has(this.request.method)", ""],
    "regress/kept-socket-ends",
  ),
  guard(
    "sent again once",
    EXCHANGE,
    ["|| this.wasReadded) return false;", ") return false;"],
    "regress/kept-socket-ends",
  ),
  guard("status 600 and above", EXCHANGE, ['if (statusCode > 599) return this.failAs("protocol");', ""], ANSWERS),
  guard(
    "version of an answer",
    "upstream/lane.ts",
    ["if (byte !== VERSION.charCodeAt(this.#versionLength)) return false;", ""],
    ANSWERS,
  ),
  guard("sockets by connection", "upstream/pool.ts", ["if (lane.share !== share) continue;", ""], "upstream/reuse"),
  guard(
    "calls at once",
    "upstream/pool.ts",
    ["if (this.#running >= this.#options.maxConcurrent) return;", ""],
    "upstream/reuse",
  ),

  guard(
    "1xx cap",
    EXCHANGE,
    ["return this.#interim <= this.answerLimits.maxInformational ||", "return true ||"],
    ANSWERS,
  ),
  guard(
    "answer header count",
    EXCHANGE,
    ["if (raw.length > 2 * this.answerLimits.maxHeaderCount)", "if (false)"],
    ANSWERS,
  ),
  guard(
    "answer size by length",
    WHOLE,
    ["if (fields.contentLength > this.answerLimits.maxResponseBytes)", "if (false)"],
    ANSWERS,
  ),
  guard("answer size, raw", WHOLE, ["if (this.#size > this.answerLimits.maxResponseBytes)", "if (false)"], ANSWERS),
  guard("answer size, decoded", "upstream/decode.ts", ["maxOutputLength: maxBytes,", ""], "upstream/decode"),
  guard("content-encoding chain", "upstream/decode.ts", [" || codings.length === MAX_CODINGS", ""], "upstream/decode"),
  guard("transfer-encoding", WHOLE, ["return isChunkedOrNone(fields.transferEncoding) ||", "return true ||"], ANSWERS),
  guard(
    "answer cut short",
    EXCHANGE,
    ['if (this.lane?.isBroken === true) this.failAs("cutShort");\n    else', ""],
    ANSWERS,
    "upstream/tls",
  ),
  guard(
    "cookies and hop-by-hop fields",
    "relay/answer.ts",
    ["if (DROPPED.has(key) || named?.has(key)) continue;", ""],
    "relay/answer",
  ),

  guard(
    "redaction, body",
    REDACT,
    ['groups.filter(({ anchor }) => input.includes(anchor, 0, "latin1"))', "NONE"],
    "telemetry/redact",
  ),
  guard(
    "redaction, filter",
    "telemetry/anchor-filter.ts",
    ["Math.min(MAX_STEP, shortest - GRAM + 1)", "Math.min(MAX_STEP, shortest - GRAM + 2)"],
    "telemetry/anchor-filter",
  ),
  guard(
    "redaction, filter: parts of whole steps",
    "telemetry/anchor-search.ts",
    ["INPUT_BYTES - (INPUT_BYTES % step)", "INPUT_BYTES"],
    "telemetry/anchor-filter",
  ),
  guard(
    "redaction, filter: only tables that fit",
    "telemetry/anchor-filter.ts",
    ["4 * (bitWords + places) > MAX_TABLE_BYTES", "false"],
    "telemetry/anchor-filter",
  ),
  guard("redaction, base64", REDACT, ["}, ...base64];", "}];"], "telemetry/redact"),
  guard(
    "redaction, URL-encoded",
    REDACT,
    ["const url = encodeURIComponent(secret);", "const url = secret;"],
    "telemetry/redact",
  ),
  guard(
    "redaction, between two pieces",
    REDACT,
    ["Math.max(0, ...groups.map(({ anchor }) => anchor.length - 1))", "0"],
    "relay/large-answer",
  ),
  guard(
    "redaction of small JSON is made",
    "relay/answer.ts",
    ["const text = redacted(body, redactor);", "const text = body;"],
    "relay/answer",
  ),
  guard(
    "redaction of large JSON is made",
    "relay/large-answer.ts",
    ["if (hasSecret(slice)) {", "if (false) {"],
    "relay/large-answer",
  ),
  guard(
    "redaction looks across the border of two pieces",
    "relay/large-answer.ts",
    ["mayOccurIn(slice) || (seam !== undefined && mayOccurIn(seam))", "mayOccurIn(slice)"],
    "relay/large-answer",
  ),
  guard(
    "redacted JSON is judged again",
    "relay/large-answer.ts",
    ["isJson: yield* isJsonInSteps(bytes)", "isJson: true"],
    "relay/large-answer",
  ),
  guard(
    "redaction of recoded JSON is made",
    "relay/answer.ts",
    [
      "const text = redactor.text(decodeText(body.concat(), charset));",
      "const text = decodeText(body.concat(), charset);",
    ],
    "relay/answer",
  ),
  guard(
    "redaction of text is made",
    "relay/answer.ts",
    [
      "text: redactor.text(decodeText(body.concat(), mediaType.charset))",
      "text: decodeText(body.concat(), mediaType.charset)",
    ],
    "relay/answer",
  ),
  guard(
    "redaction of bytes is made",
    "relay/answer.ts",
    ['kind: "binary", bytes: redacted(body, redactor)', 'kind: "binary", bytes: body'],
    "relay/answer",
  ),
  guard(
    "redaction of body mode is made",
    "relay/answer.ts",
    ['kind: "body", bytes: redacted(body, redactor)', 'kind: "body", bytes: body'],
    "relay/answer",
  ),
  guard(
    "redaction of a header is made",
    "relay/answer.ts",
    ["fields.push([redactor.text(name), redactor.text(value)])", "fields.push([name, value])"],
    "relay/answer",
  ),
  guard(
    "redaction of joined headers",
    "relay/answer.ts",
    ["field[1] = redactor.text(`${field[1]}, ${value}`)", "field[1] = `${field[1]}, ${value}`"],
    "relay/answer-echo",
  ),
  guard(
    "redaction of the id token",
    "relay/send-with-token.ts",
    ["[current.token] : [current.token, idToken]", "[current.token] : [current.token]"],
    "relay/id-token",
  ),
];
