import { type Guard, guard } from "./guard.js";

const CAPTURE = "records/call-capture.ts";
const JSON_MASK = "records/mask-json.ts";
const TEXT_MASK = "records/mask-text.ts";
const WRITER = "records/record-writer.ts";
const BLOCKS = "store/call-blocks.ts";

/** What is recorded of calls, how much of it, and what a capture shows. */
export const RECORD_GUARDS: readonly Guard[] = [
  guard(
    "record: values of the query",
    "records/call-target.ts",
    ['part.slice(0, Math.max(0, part.indexOf("=")))', "part"],
    "records/service",
  ),
  guard(
    "record: path without the query",
    "records/call-target.ts",
    ["target.slice(0, mark))", "target)"],
    "records/service",
  ),
  guard("record: bound of the queue", WRITER, ["before >= MAX_BYTES)", "false)"], "records/record-writer"),
  guard("record: drops are counted", WRITER, ["this.#drop(countOf(blocks));", ""], "records/record-writer"),
  guard(
    "record: what leaves its ring before it is written",
    "records/waiting-calls.ts",
    [
      "Math.min(this.#options.maxCalls, Math.max(FIRST_PLACES, this.#places * 2))",
      "Math.max(FIRST_PLACES, this.#places * 2)",
    ],
    "records/record-writer",
  ),
  guard(
    "record: bound of a transaction",
    "records/batches.ts",
    ["count > MAX_CALLS || length > MAX_LENGTH", "false"],
    "records/record-writer",
  ),
  guard(
    "record: bound of a block",
    "records/waiting-calls.ts",
    [" && block.length <= maxLength", ""],
    "records/record-writer",
  ),
  guard("record: written at the end", WRITER, ["await within(written, CLOSE_MS);", ""], "records/service"),
  guard(
    "record: bound of the end",
    WRITER,
    ["await within(written, CLOSE_MS);", "await written;"],
    "records/record-writer",
  ),
  guard("record: ring", BLOCKS, ["position + block.count - maxCalls", "0"], "store/calls"),
  guard("record: age", "records/retention.ts", ["now() - days * DAY_MS", "0"], "records/retention"),
  guard(
    "record: damaged file",
    "store/lazy-calls-file.ts",
    ["if (!isDamage(error) || !this.#replace()) throw error;", "throw error;"],
    "store/calls",
  ),
  guard(
    "record: new file in the place of another",
    "store/lazy-calls-file.ts",
    ["if (identity !== this.#identity) this.#letGo();", ""],
    "store/calls",
  ),
  guard(
    "record: no good file moved aside",
    "store/damaged-file.ts",
    ["identity === undefined || identityOf(path) !== identity", "identity === undefined"],
    "store/damaged-file",
  ),
  guard(
    "capture: age, whatever becomes of records",
    "records/retention.ts",
    [
      "await Promise.all([forget(calls, now() - days * DAY_MS), ",
      "await forget(calls, now() - days * DAY_MS); await Promise.all([",
    ],
    "records/retention",
  ),
  guard("record: application that is gone", "store/calls-file.ts", ["exists(applicationId)", "true"], "store/calls"),
  guard(
    "record: end with the application",
    "store/delete-application.ts",
    ["while ((await calls.deleteOf(id, BLOCK_BATCH)) === BLOCK_BATCH) await nextTurn();", ""],
    "store/calls",
  ),
  guard(
    "record: places of watchers",
    "records/call-watch.ts",
    ["this.#watchers.size >= MAX_WATCHERS", "false"],
    "records/call-watch",
  ),
  guard("record: places of one operator", "records/call-watch.ts", [" || own >= MAX_OF_ONE", ""], "records/call-watch"),
  guard(
    "record: turns between blocks",
    "records/read-blocks.ts",
    ["      await nextTurn();\n", ""],
    "records/read-blocks",
  ),
  guard("record: bound of a watcher", "records/watcher.ts", ["excess > 0", "false"], "records/call-watch"),
  guard(
    "capture: token in the url and fields",
    CAPTURE,
    ["[...secrets, ...credentialValues(this.#request.headers, this.#request.url)]", "[]"],
    "records/service",
  ),
  guard("capture: the field of the token", CAPTURE, ["isCredential ? MASKED : ", ""], "records/call-capture"),
  guard("capture: fields by name", TEXT_MASK, ["isSensitiveField(name) ? MASKED : ", ""], "records/service"),
  guard(
    "capture: parameters by name",
    CAPTURE,
    ['maskParameters(query.join("?"))', 'query.join("?")'],
    "records/service",
  ),
  guard("capture: members by name", JSON_MASK, ["masked += maskValue(name, ", "masked += ("], "records/mask"),
  guard(
    "capture: JSON in strings",
    JSON_MASK,
    ["if (!string.includes('\\\\\"')) return string;", "return string;"],
    "records/mask",
  ),
  guard(
    "capture: beginning of a secret at a cut",
    "records/captured-body.ts",
    ["if (isWhole) redacted", "redacted"],
    "records/call-capture",
  ),
  guard(
    "capture: size of a body",
    "records/captured-body.ts",
    ["bytes.length <= MAX_BYTES", "true"],
    "records/service",
  ),
  guard("capture: its end", "records/capturing.ts", ["captureUntil <= now()", "false"], "records/service"),
  guard("capture: number of calls", "store/captures.ts", ["AND :max_calls > (", "AND 0 <= ("], "store/calls"),
  guard(
    "capture: for operators alone",
    "admin/call-record-service.ts",
    ['role !== "operator"', "role === undefined"],
    "admin/call-records",
  ),
  guard(
    "capture: binding",
    "records/seal-capture.ts",
    ["applicationId, userId: callId,", 'applicationId, userId: "",'],
    "records/call-capture",
  ),
];
