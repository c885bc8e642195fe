// biome-ignore-all lint/suspicious/noTemplateCurlyInString: it is text of the source
import { type Guard, guard } from "./guard.js";

const EXCHANGE = "upstream/exchange.ts";
const WHOLE = "upstream/whole-exchange.ts";
const DIAL = "upstream/dial";
const ANSWERS = "upstream/answers";
const REDACT = "redaction/redact.ts";
const FILTER = "redaction/piece-filter.ts";
const READING = "redaction/reading.ts";
const UNESCAPE = "redaction/unescape.ts";

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
    ["if (!this.#response.writableEnded) this.#abort(", "if (false) this.#abort("],
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
  guard("open-ended answer", EXCHANGE, ["if (isDelimited ||", "if (true ||"], "regress/open-ended-answer"),
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
    ["if (!filter.mayBeInBytes(input)) return input;", "return input;"],
    "redaction/redact",
  ),
  guard(
    "redaction, filter",
    FILTER,
    ["shortest - lost - GRAM + 1)));", "shortest + GRAM)));"],
    "redaction/piece-filter",
  ),
  guard(
    "redaction, filter: parts overlap",
    FILTER,
    ["at += SEARCH.readFrom()) {", "at += PART_BYTES) {"],
    "redaction/piece-filter",
  ),
  guard(
    "redaction, filter: both alphabets",
    FILTER,
    ["if (byte === 0x2b) keepFrom", "if (byte === 0) keepFrom"],
    "redaction/piece-filter",
  ),
  guard(
    "redaction, base64",
    "redaction/spellings.ts",
    ["const encoded = [...base64, ...twice].filter(", "const encoded = base64.slice(0, 0).filter("],
    "redaction/redact",
  ),
  guard(
    "redaction, base64 of base64",
    "redaction/spellings.ts",
    ["[...base64, ...twice].filter(", "[...base64].filter("],
    "redaction/spellings",
  ),
  guard(
    "redaction, base64 of what JSON and URLs escape",
    "redaction/spellings.ts",
    ["return [...new Set([secret, json,", "return [...new Set([secret]), ...[json,].slice(1), ...[json,"],
    "redaction/spellings",
  ),
  guard(
    "redaction, base64 in lines",
    READING,
    ["if (byte === LF || byte === CR) {", "if (byte === LF - 9) {"],
    "redaction/spellings",
  ),
  guard(
    "redaction, base64 whose line ends behind its first letter",
    REDACT,
    ["[...texts, ...spellings.flatMap(({ rests }) => rests)]", "texts"],
    "redaction/spellings",
  ),
  guard(
    "redaction, percent-encoded",
    UNESCAPE,
    ["if (pending[from] === PERCENT) value =", "if (false) value ="],
    "redaction/spellings",
  ),
  guard(
    "redaction, escaped in JSON",
    UNESCAPE,
    ["if (pending[from] === BACKSLASH && pending[from + 1] === LETTER_U) {", "if (false) {"],
    "redaction/spellings",
  ),
  guard(
    "redaction, escapes of escapes",
    UNESCAPE,
    ["while (this.#undoLast(start + 1));", "this.#undoLast(start + 1);"],
    "redaction/spellings",
  ),
  guard(
    "redaction, a backslash behind one that was escaped",
    UNESCAPE,
    ["(this.#levels[from + 1] as number) < (this.#levels[from] as number)", "false"],
    "redaction/spellings",
  ),
  guard(
    "redaction, a token that begins within an escape",
    READING,
    ["if (this.#otherState !== 0 && start >= this.#otherFrom)", "if (false)"],
    "redaction/spellings",
  ),
  guard(
    "redaction, work of one step",
    "redaction/automaton.ts",
    ["from = fail[from] as number;", "from = fail[from] as number; looked += from >> 8;"],
    "redaction/work",
  ),
  guard(
    "redaction, what is kept back is bounded",
    "redaction/redact-stream.ts",
    ["if (came - begun > maxKept) {", "if (false) {"],
    "redaction/work",
  ),
  guard(
    "redaction: no part of a text by Range",
    "relay/send-with-token.ts",
    ["if (!isPartOfText(checked.headers, answer)) return", "return"],
    "relay/range",
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
    ["stream.hasFound ? clean : body", "body"],
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
    ["=> [redactor.text(name), redactor.text(value)]", "=> [redactor.text(name), value]"],
    "relay/answer",
  ),
  guard(
    "redaction of the id token",
    "relay/send-with-token.ts",
    ["[current.token] : [current.token, idToken]", "[current.token] : [current.token]"],
    "relay/id-token",
  ),
];
