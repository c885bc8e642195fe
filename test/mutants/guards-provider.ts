// biome-ignore-all lint/suspicious/noTemplateCurlyInString: it is text of the source
import { type Guard, guard } from "./guard.js";

const DIAL = "upstream/dial";
const ANSWERS = "upstream/answers";

/** Where a request may go, and what may come back. */
export const PROVIDER_GUARDS: readonly Guard[] = [
  guard("lookup check", ['if (result === "deny") throw new AddressRefusedError(rule);', ""], "upstream/lookup"),
  guard("literal address check", ['if (decision?.result === "deny") {', "if (false) {"], DIAL),
  guard(
    "private addresses",
    ['if (rule === "private") return policy.allowPrivateNetwork;', 'if (rule === "private") return true;'],
    "upstream/address",
  ),
  guard(
    "loopback addresses",
    ['if (rule === "loopback") return policy.allowLoopback;', 'if (rule === "loopback") return true;'],
    "upstream/address",
  ),
  guard("metadata addresses", ['...ranges("metadata",', '...[].concat("metadata",'], "upstream/address"),
  guard(
    "cleartext only to loopback",
    ['if (target.protocol !== "https:" && decision.rule !== "loopback")', "if (false)"],
    DIAL,
  ),
  guard(
    "relay dials itself",
    ["return isSelf(address, target.port, policy.selfAddresses()) ?", "return false ?"],
    DIAL,
  ),
  guard("relay is told where it listens", ["parts.selfAddresses.push(", "[].concat("], "call/self-call"),
  guard("certificate check", ["rejectUnauthorized: true", "rejectUnauthorized: false"], "upstream/tls"),

  guard("deadline", ["exchange.expire();", ""], "upstream/abort"),
  guard(
    "caller gone",
    ["if (!this.#response.writableEnded) this.#abort(", "if (false) this.#abort("],
    "api/rest/request-limits",
  ),
  guard(
    "poll phase before reuse (P22)",
    ["setImmediate(this.#onCheckPhase);", "this.#onCheckPhase();"],
    "upstream/reuse",
  ),
  guard(
    "unread answer ends the socket",
    ["if (!isWhole || this.#isClosed", "if (this.#isClosed"],
    "upstream/reuse",
    "upstream/abort",
  ),
  guard("rest before reuse", ["if (socket.restsUntil > now) return;", ""], "regress/late-second-answer"),
  guard("no reuse after a stray answer", ["|| now < this.#distrustedUntil", ""], "regress/late-second-answer"),
  guard("a POST is not sent again", ["&& IDEMPOTENT.has(this.request.method)", ""], "regress/kept-socket-ends"),
  guard("sent again once", ["|| this.wasReadded) return false;", ") return false;"], "regress/kept-socket-ends"),
  guard("open-ended answer", ["if (isDelimited ||", "if (true ||"], "regress/open-ended-answer"),
  guard("status 600 and above", ['if (statusCode > 599) return this.failAs("protocol");', ""], ANSWERS),
  guard("version of an answer", ["if (byte !== VERSION.charCodeAt(this.#versionLength)) return false;", ""], ANSWERS),
  guard("sockets by connection", ["if (socket.share !== share) continue;", ""], "upstream/reuse"),
  guard(
    "calls at once",
    ["|| !this.#running.isOpenTo(next.running)) return undefined;", ") return undefined;"],
    "upstream/reuse",
  ),

  guard("1xx cap", ["return this.#interim <= this.answerLimits.maxInformational ||", "return true ||"], ANSWERS),
  guard("answer header count", ["if (raw.length > 2 * this.answerLimits.maxHeaderCount)", "if (false)"], ANSWERS),
  guard(
    "answer size by length",
    ["if (hasBody && fields.contentLength > this.answerLimits.maxResponseBytes)", "if (false)"],
    ANSWERS,
  ),
  guard("answer size, raw", ["if (this.#size > this.answerLimits.maxResponseBytes)", "if (false)"], ANSWERS),
  guard("answer size, decoded", ['if (length > maxBytes) throw relayError("tooLarge");', ""], "upstream/decode"),
  guard(
    "refusal whose body is lost",
    ["if (trace.head === undefined) throw error;", "throw error;"],
    "regress/refused-with-lost-body",
  ),
  guard(
    "bytes behind the end of a coded body",
    ['if (!(await feed.endsWithDecoder())) throw relayError("corrupt");', ""],
    "regress/coded-bodies",
  ),
  guard(
    "memory of decoders",
    ['if (memory?.reserve(windowBytes) === false) throw relayError("noMemory");', ""],
    "upstream/stream",
  ),
  guard(
    "memory of a decoded answer",
    ["(more > 0 && this.memory?.reserve(more) === false)", "false"],
    "upstream/decode",
  ),
  guard("decoding ends with its call", ["if (this.isOver || (more > 0", "if ((more > 0"], "upstream/abort"),
  guard("content-encoding chain", [" || codings.length === MAX_CODINGS", ""], "upstream/decode"),
  guard("transfer-encoding", ["if (hasBody && !isChunkedOrNone(fields.transferEncoding))", "if (false)"], ANSWERS),
  guard(
    "answer cut short",
    ['if (this.socket?.isBroken === true) this.failAs("cutShort");\n    else', ""],
    ANSWERS,
    "upstream/tls",
  ),
  guard("cookies and hop-by-hop fields", ["if (DROPPED.has(key) || named?.has(key)) continue;", ""], "call/answer"),

  guard("redaction, body", ["if (first === -1) return input;", "return input;"], "redaction/redact"),
  guard(
    "redaction, filter",
    ["(shortest - LINE_LETTERS) / 2 - GRAM + 1);", "shortest + GRAM);"],
    "redaction/piece-filter",
  ),
  guard(
    "redaction, filter: parts overlap",
    ["at += SEARCH.readFrom()) {", "at += PART_BYTES) {"],
    "redaction/piece-filter",
  ),
  guard(
    "redaction, filter: all pieces",
    ["at < grams.length; at += PART_BYTES", "at < PART_BYTES; at += PART_BYTES"],
    "redaction/piece-filter",
  ),
  guard(
    "redaction, filter: both alphabets",
    ["if (byte === 0x2b) addGram", "if (byte === 0) addGram"],
    "redaction/piece-filter",
  ),
  guard(
    "redaction, base64",
    ["const encoded = [...base64, ...twice].filter(", "const encoded = base64.slice(0, 0).filter("],
    "redaction/redact",
  ),
  guard("redaction, UTF-16", ["utf16Of(secret), ...encoded", "...encoded"], "redaction/spellings"),
  guard("redaction, in HTML", ['"+": "&#43;"', ""], "redaction/spellings"),
  guard("redaction, in HTML, quotes", ['\'"\': "&#34;", "\'": "&#39;" }', "}"], "redaction/spellings"),
  guard("redaction, JSON of what looks escaped", ["...jsonForms(secret), ...pages", "...pages"], "redaction/spellings"),
  guard(
    "redaction, halves of surrogate pairs",
    ["HALVES.test(text) ? [Buffer.from(halves)] : []", "[]"],
    "redaction/spellings",
  ),
  guard("redaction, secrets that look escaped", [".flatMap(withUndone)", ""], "redaction/spellings"),
  guard(
    "redaction, ordinary text that is a secret once undone",
    ["undone.length < MIN_SECRET_LENGTH", "undone.length < 4"],
    "redaction/spellings",
  ),
  guard("redaction, base64 of base64", ["[...base64, ...twice].filter(", "[...base64].filter("], "redaction/spellings"),
  guard(
    "redaction, base64 of what JSON and URLs escape",
    ["return [...new Set([secret, ...jsonForms(secret), url, lower])];", "return [secret];"],
    "redaction/spellings",
  ),
  guard(
    "redaction, base64 in lines",
    ["if ((byte === LF || byte === CR) && !this", "if (byte === LF - 9 && !this"],
    "redaction/spellings",
  ),
  guard(
    "redaction, base64 whose line ends behind its first letter",
    ["[...all.flatMap(({ texts }) => texts), ...all.flatMap(rests)]", "all.flatMap(({ texts }) => texts)"],
    "redaction/spellings",
  ),
  guard("redaction, percent-encoded", ["isJson ? LONG : TRIPLET", "LONG"], "redaction/spellings"),
  guard("redaction, escaped in JSON", ["byte === LETTER_U ? MORE", "byte < 0 ? MORE"], "redaction/spellings"),
  guard("redaction, escapes of escapes", ["const MOST_UNDONE = 4;", "const MOST_UNDONE = 1;"], "redaction/spellings"),
  guard(
    "redaction, what precedes an escape",
    ["    place.state = state;\n    place.lineEnd = lineEnd;\n", ""],
    "redaction/spellings",
  ),
  guard(
    "redaction, what precedes a cut escape",
    ["this.#textAt(this.#before, this.#places[0] as number)", "(this.#places[0] as number)"],
    "redaction/redact-stream",
  ),
  guard(
    "redaction, an escape of escapes that are not ended",
    ["if (this.#next?.isActive || isLead(byte)) this.#release();", "if (this.#next?.isActive) this.#release();"],
    "redaction/spellings",
  ),
  guard(
    "redaction, no reading ends within an escape",
    ["if (this.#length === 0 && this.#next?.isActive && this", "if (this.#next?.isActive && this"],
    "redaction/spellings",
  ),
  guard(
    "redaction, a token that begins within an escape",
    ["        place.otherState = state;\n", ""],
    "redaction/spellings",
  ),
  guard(
    "redaction, work of one step",
    ["from = fail[from] as number;", "from = fail[from] as number; looked += from >> 8;"],
    "redaction/work",
  ),
  guard(
    "redaction, of a long token no more is worked out than is read",
    ["reach(to, state);", "{ reach(to, state); for (let at = to; label[at] !== NO_LETTER; at++) looked++; }"],
    "redaction/work",
  ),
  guard("redaction, what is kept back is bounded", ["came - begun > reading.maxKept", "false"], "redaction/work"),
  guard(
    "redaction: no part of a text by Range",
    ["if (!isPartOfText(checked, answer)) return", "return"],
    "call/range",
  ),
  guard("redaction: no part of a text by another name", ["|| BYTES.test(range);", "|| false;"], "call/range"),
  guard("redaction of small JSON is made", ["clean === whole ? body : bytesOf(clean)", "body"], "call/answer"),
  guard("redaction of large JSON is made", ["stream.hasFound() ? clean : body", "body"], "call/large-answer"),
  guard(
    "redaction of recoded JSON is made",
    ["yield* judged(utf8, redactor);", "{ ...(yield* judged(utf8, redactor)), bytes: utf8 };"],
    "call/answer",
  ),
  guard(
    "redaction of bytes is made",
    ['kind: "binary", bytes: yield* redacted(body, redactor)', 'kind: "binary", bytes: body'],
    "call/answer",
  ),
  guard(
    "redaction of body mode is made",
    ['kind: "body", bytes: yield* redacted(body, redactor)', 'kind: "body", bytes: body'],
    "call/answer",
  ),
  guard(
    "redaction of a header is made",
    ["=> [redactor.text(name), redactor.text(value)]", "=> [redactor.text(name), value]"],
    "call/answer",
  ),
  guard(
    "redaction of the id token",
    ["current.secrets : [...current.secrets, idToken]", "current.secrets : [...current.secrets]"],
    "call/id-token",
  ),
  guard(
    "expiry: a status that means other things too, only past the lifetime",
    ["(isPastLifetime || !signal.pastLifetime)", "true"],
    "providers/expiry-signal",
  ),
  guard(
    "expiry: no long answer is parsed",
    ["byMember.length === 0 || body.length > MAX_SIGNAL_BYTES", "byMember.length === 0"],
    "providers/expiry-signal",
  ),
  guard(
    "values: the default of one that the connection is older than",
    ["textIn(withDefaults(texts, { connectionValues: values }))", "textIn(texts)"],
    "providers/endpoint",
  ),
];
