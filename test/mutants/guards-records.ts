import { type Guard, guard } from "./guard.js";

/** What is recorded of calls, how much of it, and what a capture shows. */
export const RECORD_GUARDS: readonly Guard[] = [
  guard("record: values of the query", ['part.slice(0, Math.max(0, part.indexOf("=")))', "part"], "records/service"),
  guard("record: path without the query", ["target.slice(0, mark))", "target)"], "records/service"),
  guard("record: bound of the queue", ["before >= MAX_BYTES)", "false)"], "records/record-writer"),
  guard("record: drops are counted", ["this.#drop(countOf(blocks));", ""], "records/record-writer"),
  guard(
    "record: what leaves its ring before it is written",
    ["waiting.calls.length < this.#options.maxCalls ? waiting.calls.length : waiting.first", "waiting.calls.length"],
    "records/record-writer",
  ),
  guard(
    "record: bound of a transaction",
    ["count > MAX_CALLS || length > MAX_LENGTH", "false"],
    "records/record-writer",
  ),
  guard("record: bound of a block", [" && block.length <= maxLength", ""], "records/record-writer"),
  guard("record: written at the end", ["await within(written, CLOSE_MS);", ""], "records/service"),
  guard("record: bound of the end", ["await within(written, CLOSE_MS);", "await written;"], "records/record-writer"),
  guard("record: ring", ["position + block.count - maxCalls", "0"], "store/calls"),
  guard("record: age", ["now() - days * DAY_MS", "0"], "records/retention"),
  guard(
    "record: damaged file",
    ["if (!isDamage(error) || !this.#replace()) throw error;", "throw error;"],
    "store/calls",
  ),
  guard(
    "record: new file in the place of another",
    ["if (identity !== this.#identity) this.#letGo();", ""],
    "store/calls",
  ),
  guard(
    "record: no good file moved aside",
    ["identity === undefined || identityOf(path) !== identity", "identity === undefined"],
    "store/damaged-file",
  ),
  guard(
    "capture: age, whatever becomes of records",
    [
      "await Promise.all([forget(calls, now() - days * DAY_MS), ",
      "await forget(calls, now() - days * DAY_MS); await Promise.all([",
    ],
    "records/retention",
  ),
  guard("record: application that is gone", ["exists(applicationId)", "true"], "store/calls"),
  guard(
    "record: end with the application",
    ["while ((await calls.deleteOf(id, BLOCK_BATCH)) === BLOCK_BATCH) await nextTurn();", ""],
    "store/calls",
  ),
  guard("record: places of watchers", ["this.#watchers.size >= MAX_WATCHERS", "false"], "records/call-watch"),
  guard("record: places of one operator", [" || own >= MAX_OF_ONE", ""], "records/call-watch"),
  guard(
    "record: turns between blocks",
    ["characters = block.calls.length; await nextTurn();", "characters = block.calls.length;"],
    "records/read-blocks",
  ),
  guard("record: bound of a watcher", ["excess > 0", "false"], "records/call-watch"),
  guard(
    "capture: token in the url and fields",
    ["[...secrets, ...credentialValues(this.#request.headers, this.#request.url)]", "[]"],
    "records/service",
  ),
  guard("capture: the field of the token", ["isCredential ? MASKED : ", ""], "records/call-capture"),
  guard("capture: fields by name", ["isSensitiveField(name) ? MASKED : ", ""], "records/service"),
  guard("capture: parameters by name", ['maskParameters(query.join("?"))', 'query.join("?")'], "records/service"),
  guard("capture: members by name", ["masked += maskValue(name, ", "masked += ("], "records/mask"),
  guard(
    "capture: JSON in strings",
    ["if (!string.includes('\\\\\"')) return string;", "return string;"],
    "records/mask",
  ),
  guard("capture: beginning of a secret at a cut", ["if (isWhole) redacted", "redacted"], "records/call-capture"),
  guard("capture: size of a body", ["bytes.length <= MAX_BYTES", "true"], "records/service"),
  guard("capture: its end", ["captureUntil <= now()", "false"], "records/service"),
  guard(
    "capture: number of calls",
    ["if (((yield* first(COUNT, row))?.count ?? 0) >= maxCalls) return false;", ""],
    "store/calls",
  ),
  guard("capture: for operators alone", ['role !== "operator"', "role === undefined"], "admin/call-records"),
  guard("capture: binding", ["applicationId, userId: callId,", 'applicationId, userId: "",'], "records/call-capture"),
  guard("capture: no more credentials than a call has", [".slice(0, MAX_CREDENTIALS)", ""], "records/call-capture"),
];
