import fc from "fast-check";
import {
  CONTINUATION,
  DATA,
  END_HEADERS,
  END_STREAM,
  frame,
  HEADERS,
  PING,
  RST_STREAM,
  SETTINGS,
  uint32,
  WINDOW_UPDATE,
} from "../http/frames.js";
import type { RelayPlace } from "./relay-process.js";

const PRIORITY = 2;
const PUSH_PROMISE = 5;
const GOAWAY = 7;

/** A header block of literal fields without indexing, RFC 7541 section 6.2.2. */
export function blockFrom(fields: ReadonlyArray<readonly [name: string, value: string]>): Buffer {
  return Buffer.concat(fields.flatMap(([name, value]) => [Buffer.from([0]), literal(name), literal(value)]));
}

/** RFC 7541 sections 5.1 and 5.2. */
function literal(text: string): Buffer {
  const bytes = Buffer.from(text, "latin1");
  if (bytes.length < 127) return Buffer.concat([Buffer.from([bytes.length]), bytes]);
  const length = [127];
  let rest = bytes.length - 127;
  for (; rest >= 128; rest >>= 7) length.push((rest & 127) | 128);
  return Buffer.concat([Buffer.from([...length, rest]), bytes]);
}

/** Pseudo fields and more of a request to the relay. */
export function requestBlock(
  method: string,
  path: string,
  more: ReadonlyArray<readonly [string, string]> = [],
): Buffer {
  return blockFrom([[":method", method], [":scheme", "http"], [":path", path], [":authority", "relay.test"], ...more]);
}

/** The two frames of a good typed call on a stream. */
export function callFrames({ origin, publicKey }: RelayPlace, streamId: number): Buffer[] {
  const call = { url: `${origin}/echo-token?as=raw`, method: "GET" };
  const message = JSON.stringify({ providerName: "sandbox", userId: "user", publicKey, call });
  const block = requestBlock("POST", "/relay.v1.RelayService/Call", [["content-type", "application/json"]]);
  return [frame(HEADERS, END_HEADERS, streamId, block), frame(DATA, END_STREAM, streamId, Buffer.from(message))];
}

/** Blocks that no client sends. */
const ODD_BLOCKS: readonly Buffer[] = [
  ...["[", "", "a b", "x:99999", "%zz", "evil.test@relay.test"].map((authority) =>
    blockFrom([
      [":method", "GET"],
      [":scheme", "http"],
      [":path", "/healthz"],
      [":authority", authority],
    ]),
  ),
  blockFrom([[":method", "GET"]]),
  blockFrom([
    [":method", "GET"],
    [":method", "POST"],
    [":scheme", "http"],
    [":path", "/"],
  ]),
  blockFrom([
    ["x-a", "1"],
    [":method", "GET"],
    [":scheme", "http"],
    [":path", "/"],
  ]),
  ...[
    "connection",
    "transfer-encoding",
    "te",
    "X-UPPER",
    "",
    "a b",
    "host",
    "content-length",
    "__proto__",
    "cookie",
  ].map((name) => requestBlock("POST", "/healthz", [[name, "x"]])),
  requestBlock("CONNECT", "/"),
  requestBlock("TRACE", "*"),
  requestBlock("GET", ""),
  requestBlock("GET", "http://evil.test/"),
  requestBlock("GET", `/${"a".repeat(20_000)}`),
  requestBlock(
    "GET",
    "/healthz",
    Array.from({ length: 120 }, (_, at) => [`x-${at}`, "1"] as const),
  ),
  Buffer.from([0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0x7f]),
  Buffer.from([0x3f, 0xff, 0xff, 0xff, 0x7f]),
  Buffer.from([0x80]),
  Buffer.from([0xbe, 0xbf]),
];

/** One frame, good or not. */
function anyFrame(place: RelayPlace): fc.Arbitrary<Buffer> {
  const streamId = fc.oneof(
    { weight: 6, arbitrary: fc.constantFrom(1, 3, 5, 7) },
    fc.constantFrom(0, 2, 2 ** 31 - 1, 2 ** 31),
  );
  const payload = fc.oneof(
    fc.uint8Array({ maxLength: 24 }).map((bytes) => Buffer.from(bytes)),
    fc.constantFrom(
      uint32(0),
      uint32(1),
      uint32(2 ** 31 - 1),
      uint32(2 ** 32 - 1),
      Buffer.alloc(8),
      Buffer.alloc(16_385),
    ),
  );
  const known = fc.constantFrom(
    DATA,
    HEADERS,
    PRIORITY,
    RST_STREAM,
    SETTINGS,
    PUSH_PROMISE,
    PING,
    GOAWAY,
    WINDOW_UPDATE,
    CONTINUATION,
  );
  const flags = fc.oneof(fc.constantFrom(0, END_STREAM, END_HEADERS, END_STREAM | END_HEADERS, 0x8, 0x20), fc.nat(255));
  const good = fc.constantFrom(1, 3, 5, 7).map((id) => Buffer.concat(callFrames(place, id)));
  const odd = fc
    .tuple(streamId, flags, fc.constantFrom(...ODD_BLOCKS))
    .map(([id, bits, block]) => frame(HEADERS, bits | END_HEADERS, id, block.subarray(0, 16_384)));
  const any = fc
    .tuple(fc.oneof({ weight: 6, arbitrary: known }, fc.nat(255)), flags, streamId, payload)
    .map(([type, bits, id, bytes]) => frame(type, bits, id, bytes));
  const setting = fc
    .tuple(fc.nat(10), fc.constantFrom(0, 1, 16_384, 65_536, 2 ** 31 - 1, 2 ** 31, 2 ** 32 - 1))
    .map(([id, value]) => frame(SETTINGS, 0, 0, Buffer.concat([Buffer.from([0, id]), uint32(value)])));
  return fc.oneof(
    { weight: 3, arbitrary: good },
    { weight: 2, arbitrary: odd },
    { weight: 4, arbitrary: any },
    setting,
  );
}

/** Frames behind the preface. */
export function generatedFrames(place: RelayPlace): fc.Arbitrary<Buffer> {
  return fc.array(anyFrame(place), { minLength: 1, maxLength: 8 }).map((frames) => Buffer.concat(frames));
}
