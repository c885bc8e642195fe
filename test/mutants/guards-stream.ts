import { type Guard, guard } from "./guard.js";

/** What is handed on as it comes. */
export const STREAM_GUARDS: readonly Guard[] = [
  guard(
    "stream: redaction is made",
    ["for (const bytes of redacting.push(piece)) yield", "for (const bytes of [piece]) yield"],
    "api/rest/stream",
  ),
  guard(
    "stream: redaction across pieces",
    ["let begun = reading?.begunAt(came) ?? came;", "let begun = came;"],
    "redaction/redact-stream",
  ),
  guard("stream: redaction of what overlaps a cut", ["run.isMarked = true;", ""], "redaction/redact-stream"),
  guard(
    "stream: what is kept back is little",
    ["let begun = reading?.begunAt(came) ?? came;", "let begun = Math.max(left, came - (reading?.maxKept ?? 0));"],
    "redaction/redact-stream",
  ),
  guard("stream: back-pressure", ["if (!this.#isWanted) this.socket?.hold();", ""], "upstream/stream"),
  guard("stream: silence ends it", ['if (this.#isWanted) this.failAs("silent");', ""], "upstream/stream"),
  guard(
    "stream: content coding",
    ['if (this.#codings === undefined) return this.failAs("coding");', ""],
    "upstream/stream",
  ),
  guard(
    "stream: decompression bomb",
    ["if (length > freeBytes && length > MAX_EXPANSION * sentBytes)", "if (false)"],
    "upstream/stream",
  ),
  guard(
    "stream: half of the places",
    ["if (!this.#streams.isOpenTo(party.streams)) return false;", ""],
    "upstream/stream",
  ),
  guard(
    "stream: its socket is let go",
    ["} finally { stream.close();", "} finally {"],
    "api/rest/stream",
    "api/rpc/stream",
  ),
  guard(
    "stream: one that gives way gets a row",
    ["if (this.#response.headersSent) cut(this.#response);", "cut(this.#response);"],
    "regress/streams-give-way",
  ),
  guard(
    "stream: one that gave way is recorded so",
    [
      ": outcomeFromFailure(call, callerGone(), options.log.fault)",
      ": outcomeFromError(call.callId, callerGone(), options.log.fault)",
    ],
    "regress/streams-give-way",
  ),
  guard("stream: a cut answer of HTTP/1.0 can be told", ["socket.resetAndDestroy();", ";"], "api/rest/stream"),
  guard(
    "stream: a cut answer can be told",
    ["if (response.headersSent) cut(response);", "if (response.headersSent) return false;"],
    "api/rest/stream",
  ),
  guard(
    "stream: fields that somebody may act on",
    ["isKept(lower) ? lower :", "true ? lower :"],
    "api/rest/stream-fields",
  ),
  guard("stream: fields are bytes", ["response.write(NOTHING)", "response.flushHeaders()"], "regress/field-bytes"),
  guard(
    "stream: a provider's page is sandboxed",
    ['"content-security-policy": "sandbox; default-src \'none\'",', ""],
    "api/rest/stream-fields",
  ),
  guard(
    "stream: caller's place, typed",
    [
      "const { memory } = context; if (memory === undefined || !memory.begin()) throw overloaded();",
      "const { memory } = context; if (memory === undefined) throw overloaded();",
    ],
    "api/rpc/stream",
  ),
  guard(
    "stream: connect-node hears of the end",
    ['response.on("close", () => response.emit("drain"));', ""],
    "api/rpc/stream",
  ),
];
