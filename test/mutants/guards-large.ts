import { type Guard, guard } from "./guard.js";

const TESTS = "api/rest/large-bodies";
const IN_STEPS = "json/in-steps";
const ANSWERS = "call/large-answer";
const PARTS = "api/rpc/message-limit";

/** What must hold of a large body as of a small one, though it is worked on in steps. */
export const LARGE_GUARDS: readonly Guard[] = [
  guard(
    "turns: end of a turn",
    ["while (lines.size > 0 && performance.now() < until);", "while (lines.size > 0);"],
    "lib/turns",
  ),
  guard(
    "turns: one owner after the other",
    ["lines.get(owner);", "lines.get(owner) ?? lines.values().next().value;"],
    "lib/turns",
  ),
  guard(
    "turns: end of a turn within one piece of work",
    ["while (performance.now() < until);", "while (true);"],
    "lib/turns",
  ),
  guard("turns: callers that are gone", ["if (signal?.aborted === true) {", "if (false) {"], "lib/turns"),
  guard("turns: the deadline", ["if (performance.now() >= deadline) {", "if (false) {"], "lib/turns"),
  guard("turns: one after the other", ["=== true) line.push(job);", "=== true) line.unshift(job);"], "lib/turns"),
  guard(
    "answers: secrets in text that was decoded",
    ["textData(yield* redacted(text, redactor), body)", "textData(text, body)"],
    ANSWERS,
    "call/answer",
  ),
  guard("large text: end within a character", ['if (checker.end()) return "whole";', 'return "whole";'], ANSWERS),
  guard("text: end within a character", ['return isPlain ? "none" : "cut";', 'return "none";'], "call/answer"),
  guard("text: types that a charset does not make text", ["!BINARY_TYPES.test(essence) && ", ""], "call/answer"),
  guard("text: bytes of another charset", ["{ fatal: isFatal }", "{}"], "call/answer"),
  guard(
    "memory: room for what is held besides",
    ["if (!memory.reserve(bytes)) throw overloaded();", "memory.reserve(bytes);"],
    TESTS,
  ),
  guard("large bodies: held once when joined", ["  bytes.becomeOne(joined);\n", ""], "lib/slices"),
  guard(
    "forms: memory while they are written",
    ["    requireRoom(this.#memory, this.#encoded.length);\n", ""],
    "call/urlencoded",
  ),
  guard(
    "forms: names that many arrays repeat",
    ["this.#repeatedLength += name.length;", "this.#repeatedLength = name.length;"],
    "call/urlencoded",
  ),
  guard(
    "names: so long that to encode them holds everybody up",
    ["name.length <= MAX_LENGTH", "true"],
    "call/urlencoded",
    "call/multipart",
  ),
  guard("typed payload: keys", ["> LIMITS.maxKeys", "> Infinity"], "api/rpc/payload-edges"),
  guard("typed payload: depth", ["depth > LIMITS.maxDepth", "false"], "api/rpc/payload-edges"),
  guard(
    "multipart: a long name in front of each of many files",
    ["this.#headsLength += head.length;", ""],
    "call/multipart",
  ),
  guard(
    "multipart: memory while parts are written",
    ["    requireRoom(this.#memory, start.length + content.length + LINE_BREAK.length);\n", ""],
    "call/multipart",
  ),
  guard(
    "multipart: pauses among files of nothing",
    [
      "escaped, yield* fileFromMembers(json, file, place)), field);\n    yield;",
      "escaped, yield* fileFromMembers(json, file, place)), field);",
    ],
    "call/multipart",
  ),
  guard("arrays: pauses among short elements", [" || untilPause <= 0", ""], "call/urlencoded"),
  guard(
    "large requests: a caller that goes is no fault",
    ["isGone(limits.signal) ? callerGone() : error", "error"],
    TESTS,
  ),
  guard("names in steps", ["name.end - name.start > SLICE_BYTES ? yield* longText(bytes, name) :", ""], IN_STEPS),
  guard(
    "strings that are refused when they are long",
    ["if (string.end - string.start <= MAX_SHORT_BYTES) return", "return"],
    "call/multipart",
    "api/rest/description",
  ),
  guard(
    "white space in steps",
    [
      "const stop = Math.min(end, this.at + bytes);\n    let at = this.at;\n    while (at < stop && isBetween",
      "const stop = end;\n    let at = this.at;\n    while (at < stop && isBetween",
    ],
    IN_STEPS,
  ),
  guard("slices of text: characters", ["while (((json[cut] as number) & 0xc0) === 0x80) cut--;", ""], IN_STEPS),
  guard("slices of text: escapes", ["if (!isString) return cut;", "return cut;"], IN_STEPS),
  guard("slices of text: pairs of surrogates", ["HIGH.test(escapeAt(json, before))", "false"], IN_STEPS),
  guard(
    "large base64: padding within",
    ["bytes?.length === (encoded.length / GROUP) * 3 ? bytes : undefined", "bytes"],
    IN_STEPS,
  ),
  guard(
    "large typed JSON: JSON",
    ["(yield* isJsonInSteps(text)) ? yield* bodyOf(text) : undefined", "yield* bodyOf(text)"],
    "api/rpc/large-json",
  ),
  guard(
    "large typed JSON: lists of millions of members",
    ["validateJsonInSteps(text, LIMITS)", "validateJsonInSteps(text)"],
    "api/rpc/large-json",
  ),
  guard(
    "large typed JSON: data URLs",
    ["base64FromJson(text, body, false)", "base64FromJson(text, body)"],
    "api/rpc/large-json",
  ),
  guard("parts of a message: in the fast path", ["requireFewParts(PARTS, bytes);", ""], PARTS),
  guard("parts of a message: JSON", ["requireFewPartsOfJson(message);", ""], PARTS),
  guard("parts of a message: beside the fast path", ["if (!form.isJson) requireFewParts(parts, message);", ""], PARTS),
  guard(
    "parts of a message: decompressed, whatever it looks like",
    [
      "if (!form.isJson) requireFewParts(parts, message);",
      "if (!form.isJson && message.at(-1) !== 0x22) requireFewParts(parts, message);",
    ],
    PARTS,
  ),
  guard(
    "parts of a message: by its own schema",
    ["createBinaryParts(handler.method.input)", "createBinaryParts(RelayService.method.call.input)"],
    PARTS,
  ),
  guard(
    "parts of a message: further messages",
    ['yield isMessage ? EXTRA[form.isJson ? "json" : "binary"] : rest;', "yield rest;"],
    PARTS,
  ),
  guard("parts of a message: what is copied for each part", ["    this.#left -= held;\n", ""], PARTS),
  guard(
    "parts of a message: wire types of what the schema has",
    ["reader.skip(step)", "reader.skip(wireType)"],
    "api/rpc/message-parts",
  ),
  guard("parts of a message: groups", ["if (wireType === WireType.StartGroup)", "if (false)"], "api/rpc/message-parts"),
  guard(
    "parts of a message in JSON: strings",
    ["if (byte === QUOTE) at = stringEnd(text, at) - 1;\n    else if", "if"],
    "api/rpc/message-parts",
  ),
  guard("large answers: room for text of another charset", ["return data.text.length;", "return 0;"], TESTS),
  guard(
    "large answers: room for escapes",
    ["data.bytes.length + (yield* escapeGrowth(data.bytes))", "data.bytes.length"],
    TESTS,
  ),
  guard("keys of a message in JSON", ["++keys > MAX_MESSAGE_KEYS", "false"], "api/rpc/message-parts"),
];
