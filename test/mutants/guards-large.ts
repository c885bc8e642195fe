import { type Guard, guard } from "./guard.js";

const TURNS = "turns.ts";
const TEXT_SLICES = "json/text-slices.ts";
const LARGE_ANSWER = "relay/large-answer.ts";
const TESTS = "rest/large-bodies";
const IN_STEPS = "json/in-steps";
const ANSWERS = "relay/large-answer";
const PARTS = "rpc/message-limit";

/** What must hold of a large body as of a small one, though it is worked on in steps. */
export const LARGE_GUARDS: readonly Guard[] = [
  guard(
    "turns: end of a turn",
    TURNS,
    ["while (lines.size > 0 && performance.now() < until);", "while (lines.size > 0);"],
    "turns",
  ),
  guard(
    "turns: one owner after the other",
    TURNS,
    ["lines.get(owner);", "lines.get(owner) ?? lines.values().next().value;"],
    "turns",
  ),
  guard(
    "turns: end of a turn within one piece of work",
    TURNS,
    ["while (performance.now() < until);", "while (true);"],
    "turns",
  ),
  guard("turns: callers that are gone", TURNS, ["if (signal?.aborted === true) {", "if (false) {"], "turns"),
  guard("turns: the deadline", TURNS, ["if (performance.now() >= deadline) {", "if (false) {"], "turns"),
  guard("turns: one after the other", TURNS, ["=== true) line.push(job);", "=== true) line.unshift(job);"], "turns"),
  guard(
    "large answers: secrets in text that was decoded",
    LARGE_ANSWER,
    [
      "yield* redacted(yield* utf8InSteps(body, mediaType.charset), redactor)",
      "yield* utf8InSteps(body, mediaType.charset)",
    ],
    ANSWERS,
  ),
  guard(
    "large text: end within a character",
    "relay/text-in-steps.ts",
    ["return checker.end();", "return true;"],
    ANSWERS,
  ),
  guard(
    "memory: room for what is held besides",
    "relay/budget.ts",
    ["if (!memory.reserve(bytes)) throw overloaded();", "memory.reserve(bytes);"],
    TESTS,
  ),
  guard("large bodies: held once when joined", "slices.ts", ["  bytes.becomeOne(joined);\n", ""], "slices"),
  guard(
    "forms: memory while they are written",
    "relay/urlencoded.ts",
    ["    requireRoom(this.#memory, this.#encoded.length);\n", ""],
    "relay/urlencoded",
  ),
  guard(
    "names: so long that to encode them holds everybody up",
    "relay/member-name.ts",
    ["name.length <= MAX_LENGTH", "true"],
    "relay/urlencoded",
    "relay/multipart",
  ),
  guard("typed payload: keys", "rpc/description.ts", ["> LIMITS.maxKeys", "> Infinity"], "rpc/payload-edges"),
  guard("typed payload: depth", "rpc/description.ts", ["depth > LIMITS.maxDepth", "false"], "rpc/payload-edges"),
  guard(
    "multipart: a long name in front of each of many files",
    "relay/multipart.ts",
    ["headsLength += part.head.length;", ""],
    "relay/multipart",
  ),
  guard(
    "multipart: pauses among files of nothing",
    "relay/multipart.ts",
    [
      "escaped, yield* fileFromMembers(json, file, place)), field);\n    yield;",
      "escaped, yield* fileFromMembers(json, file, place)), field);",
    ],
    "relay/multipart",
  ),
  guard(
    "arrays: pauses among short elements",
    "json/members-in-steps.ts",
    [" || untilPause <= 0", ""],
    "relay/urlencoded",
  ),
  guard(
    "large requests: a caller that goes is no fault",
    "rest/read-call.ts",
    ["isGone(limits.signal) ? callerGone() : error", "error"],
    TESTS,
  ),
  guard(
    "slices of text: characters",
    TEXT_SLICES,
    ["while (((json[cut] as number) & 0xc0) === 0x80) cut--;", ""],
    IN_STEPS,
  ),
  guard("slices of text: escapes", TEXT_SLICES, ["if (!isString) return cut;", "return cut;"], IN_STEPS),
  guard("slices of text: pairs of surrogates", TEXT_SLICES, ["HIGH.test(escapeAt(json, before))", "false"], IN_STEPS),
  guard(
    "large base64: padding within",
    "json/base64-from-json.ts",
    ["bytes?.length === (encoded.length / GROUP) * 3 ? bytes : undefined", "bytes"],
    IN_STEPS,
  ),
  guard(
    "large typed JSON: JSON",
    "rpc/large-json.ts",
    ["(yield* isJsonInSteps(text)) ? yield* bodyOf(text) : undefined", "yield* bodyOf(text)"],
    "rpc/large-json",
  ),
  guard(
    "large typed JSON: lists of millions of members",
    "rpc/large-json.ts",
    ["validateJsonInSteps(text, LIMITS)", "validateJsonInSteps(text)"],
    "rpc/large-json",
  ),
  guard(
    "large typed JSON: data URLs",
    "rpc/large-json.ts",
    ["base64FromJson(text, body, false)", "base64FromJson(text, body)"],
    "rpc/large-json",
  ),
  guard("parts of a message: in the lane", "lane/decode.ts", ["requireFewParts(PARTS, bytes);", ""], PARTS),
  guard("parts of a message: JSON", "rpc/json-options.ts", ["requireFewPartsOfJson(message);", ""], PARTS),
  guard(
    "parts of a message: beside the lane",
    "rpc/one-message.ts",
    ["if (!form.isJson) requireFewParts(parts, message);", ""],
    PARTS,
  ),
  guard(
    "parts of a message: decompressed, whatever it looks like",
    "rpc/one-message.ts",
    [
      "if (!form.isJson) requireFewParts(parts, message);",
      "if (!form.isJson && message.at(-1) !== 0x22) requireFewParts(parts, message);",
    ],
    PARTS,
  ),
  guard(
    "parts of a message: by its own schema",
    "rpc/adapter.ts",
    ["createBinaryParts(handler.method.input)", "createBinaryParts(RelayService.method.call.input)"],
    PARTS,
  ),
  guard(
    "parts of a message: further messages",
    "rpc/one-message.ts",
    ['yield isMessage ? EXTRA[form.isJson ? "json" : "binary"] : rest;', "yield rest;"],
    PARTS,
  ),
  guard(
    "parts of a message: what is copied for each part",
    "rpc/binary-parts.ts",
    ["    this.#left -= held;\n", ""],
    PARTS,
  ),
  guard(
    "parts of a message: wire types of what the schema has",
    "rpc/binary-parts.ts",
    ["reader.skip(step)", "reader.skip(wireType)"],
    "rpc/message-parts",
  ),
  guard(
    "parts of a message: groups",
    "rpc/binary-parts.ts",
    ["if (wireType === WireType.StartGroup)", "if (false)"],
    "rpc/message-parts",
  ),
  guard(
    "parts of a message in JSON: strings",
    "rpc/message-parts.ts",
    ["if (byte === QUOTE) at = stringEnd(text, at) - 1;\n    else if", "if"],
    "rpc/message-parts",
  ),
  guard(
    "large answers: room for text of another charset",
    LARGE_ANSWER,
    ["return data.text.length;", "return 0;"],
    TESTS,
  ),
  guard(
    "large answers: room for escapes",
    LARGE_ANSWER,
    ["data.bytes.length + (yield* escapeGrowth(data.bytes))", "data.bytes.length"],
    TESTS,
  ),
  guard(
    "keys of a message in JSON",
    "rpc/message-parts.ts",
    ["++keys > MAX_MESSAGE_KEYS", "false"],
    "rpc/message-parts",
  ),
];
