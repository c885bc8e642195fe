import { type Guard, guard } from "./guard.js";

const REDACT_STREAM = "redaction/redact-stream.ts";
const STREAMED = "upstream/streamed-exchange.ts";
const FIELDS = "rest/stream-fields.ts";
const STREAM = "relay/stream.ts";

/** What is handed on as it comes. */
export const STREAM_GUARDS: readonly Guard[] = [
  guard(
    "stream: redaction is made",
    STREAM,
    ["yield* chunksOf(redacting.push(piece), trace);", "yield* chunksOf([piece], trace);"],
    "rest/stream",
  ),
  guard(
    "stream: redaction across pieces",
    REDACT_STREAM,
    ["let begun = reading.begunAt(came);", "let begun = came;"],
    "redaction/redact-stream",
  ),
  guard(
    "stream: redaction of what overlaps a cut",
    REDACT_STREAM,
    ["run.isMarked = true;", ""],
    "redaction/redact-stream",
  ),
  guard(
    "stream: what is kept back is little",
    REDACT_STREAM,
    ["let begun = reading.begunAt(came);", "let begun = Math.max(left, came - maxKept);"],
    "redaction/redact-stream",
  ),
  guard("stream: back-pressure", STREAMED, ["if (!this.#isWanted) this.lane?.hold();", ""], "upstream/stream"),
  guard("stream: silence ends it", STREAMED, ['if (this.#isWanted) this.failAs("silent");', ""], "upstream/stream"),
  guard(
    "stream: content coding",
    STREAMED,
    ["if (hasBody && (codings === undefined ||", "if (hasBody && (false ||"],
    "upstream/stream",
  ),
  guard(
    "stream: decompression bomb",
    "upstream/decode-stream.ts",
    ["if (length > freeBytes && length > MAX_EXPANSION * sent.bytes)", "if (false)"],
    "upstream/stream",
  ),
  guard(
    "stream: half of the places",
    "upstream/pool.ts",
    ["if (this.#streams.size >= Math.max(1, maxConcurrent >> 1)) return false;", ""],
    "upstream/stream",
  ),
  guard("stream: its socket is let go", STREAM, ["    stream.close();", ""], "rest/stream", "rpc/stream"),
  guard(
    "stream: a cut answer of HTTP/1.0 can be told",
    "rest/stream-handler.ts",
    ["response.socket?.resetAndDestroy();", ""],
    "rest/stream",
  ),
  guard(
    "stream: a cut answer can be told",
    "rest/stream-handler.ts",
    ["if (exchange.response.headersSent) cut(exchange.response);", "if (exchange.response.headersSent) return;"],
    "rest/stream",
  ),
  guard(
    "stream: fields that somebody may act on",
    FIELDS,
    ["[isKept(name, value) ? name :", "[true ? name :"],
    "rest/stream-fields",
  ),
  guard(
    "stream: fields are bytes",
    "rest/stream-handler.ts",
    ["response.write(NOTHING)", "response.flushHeaders()"],
    "regress/field-bytes",
  ),
  guard(
    "stream: a provider's page is sandboxed",
    FIELDS,
    ['"content-security-policy": "sandbox; default-src \'none\'",', ""],
    "rest/stream-fields",
  ),
  guard(
    "stream: caller's place, typed",
    "rpc/relay-service.ts",
    [
      "if (memory === undefined || !memory.begin()) throw overloaded();",
      "if (memory === undefined) throw overloaded();",
    ],
    "rpc/stream",
  ),
  guard("stream: connect-node hears of the end", "rpc/adapter.ts", ['response.emit("drain");', ""], "rpc/stream"),
];
