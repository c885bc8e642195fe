import fc from "fast-check";
import { HELLO, PREFACE } from "../http/frames.js";
import type { RawSend } from "./raw-exchange.js";
import { createHttp1Requests } from "./raw-http1.js";
import { generatedFrames } from "./raw-http2.js";
import type { RelayPlace } from "./relay-process.js";

/** What is sent on one connection. */
export interface RawInput {
  readonly bytes: Buffer;
  /** Where the bytes are split into several writes, as fractions of their length. */
  readonly splits: readonly number[];
  readonly end: RawSend["end"];
}

/** Bytes put in the place of others: anywhere, or at the start of a line of the head. */
interface Edit {
  readonly place: { readonly kind: "byte"; readonly at: number } | { readonly kind: "line"; readonly line: number };
  readonly cut: number;
  readonly bytes: Buffer;
}

const LINES = [
  ..."Host: [|Host:|Host: a b|Host: %zz|Host: x:99999|Host: evil.test|Host: relay.test".split("|"),
  ..."Transfer-Encoding: chunked|Transfer-Encoding: identity|Transfer-Encoding: chunked, identity|TE: x".split("|"),
  ..."Transfer-Encoding: \x0bchunked|Transfer-Encoding : chunked|transfer-encoding: xchunked".split("|"),
  ..."Content-Length: 0|Content-Length: 5|Content-Length: 2, 2|Content-Length: +2|Content-Length: -1".split("|"),
  ..."Content-Length: 4294967295|Content-Length: 18446744073709551616|Content-Length : 5|Content-Length: 0x5".split(
    "|",
  ),
  ..."Expect: 100-continue|Expect: foo|Connection: close|Connection: upgrade|Connection: keep-alive, content-length".split(
    "|",
  ),
  ..."Upgrade: websocket|Upgrade: h2c|__proto__: x|constructor: x|Cookie: a=b|Content-Encoding: gzip|Content-Encoding: br".split(
    "|",
  ),
  ..."Content-Encoding: zstd|Connect-Timeout-Ms: 0|Connect-Timeout-Ms: abc|Connect-Timeout-Ms: -1|Grpc-Timeout: 1n".split(
    "|",
  ),
  ..."Connect-Timeout-Ms: 9999999999|Content-Type: application/proto|Content-Type: text/plain|Content-Type: x".split(
    "|",
  ),
  ..."X-Forwarded-For: 1.2.3.4|Origin: null|Origin: https://evil.test|x-partner-key: a.b|Authorization: Bearer x".split(
    "|",
  ),
  ..."GET / HTTP/1.1|GET /healthz HTTP/1.0|GET /|X-A: \0|X-A : 1| folded|X-A|: x|X-\u00e9: \u00ff".split("|"),
  `X-Long: ${"a".repeat(20_000)}`,
  Array.from({ length: 120 }, (_, at) => `X-${at}: 1`).join("\r\n"),
].map((line) => Buffer.from(`${line}\r\n`, "latin1"));

const PIECES = [
  ...[
    "\r\n",
    "\n",
    "\r",
    "\0",
    " ",
    ":",
    "\t",
    "\x0b",
    "\x7f",
    "\xff",
    "%",
    "%00",
    "%zz",
    "&",
    "=",
    "?",
    "#",
    "//",
    "\\",
    "@",
  ],
  ...[
    "0\r\n\r\n",
    "ffffffffffffffff\r\n",
    "-1\r\n",
    "5;a=b\r\n",
    "\r\n\r\n",
    "{",
    "}",
    '"',
    "[",
    "\ud83d",
    "null",
    "[]",
  ],
  ...["&public_key=x", "&user_id=x", "&user_id[]=x", "&public_key[$ne]=", "__proto__", "../", "%2e%2e/"],
  ...["GET /healthz HTTP/1.1\r\nHost: relay.test\r\n\r\n", "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"],
].map((text) => Buffer.from(text, "latin1"));

/** The first bytes of a TLS client. */
const TLS_HELLO = Buffer.concat([
  Buffer.from("16030100c8010000c40303", "hex"),
  Buffer.alloc(32, 7),
  Buffer.from("20", "hex"),
  Buffer.alloc(32, 9),
  Buffer.from("0006130113021303010000750000000e000c0000097468652d72656c6179", "hex"),
]);

const anyFraction = fc.double({ min: 0, max: 1, noNaN: true });

function editsWith(evil: string): { readonly byteEdit: fc.Arbitrary<Edit>; readonly lineEdit: fc.Arbitrary<Edit> } {
  const piece = fc.oneof(
    { weight: 3, arbitrary: fc.constantFrom(...PIECES, Buffer.from(evil)) },
    { weight: 1, arbitrary: fc.uint8Array({ minLength: 1, maxLength: 4 }).map((bytes) => Buffer.from(bytes)) },
    { weight: 1, arbitrary: fc.constant(Buffer.alloc(0)) },
  );
  const byteEdit = fc.record({
    place: fc.record({ kind: fc.constant("byte" as const), at: anyFraction }),
    cut: fc.oneof({ weight: 6, arbitrary: fc.nat(4) }, fc.constantFrom(40, 1_000_000)),
    bytes: piece,
  });
  const lineEdit = fc.record({
    place: fc.record({ kind: fc.constant("line" as const), line: fc.integer({ min: 0, max: 4 }) }),
    cut: fc.constant(0),
    bytes: fc.constantFrom(...LINES),
  });
  return { byteEdit, lineEdit };
}

/** Connections of every kind. */
export function generatedInputs(place: RelayPlace, evil: string): fc.Arbitrary<RawInput> {
  const requests = createHttp1Requests(place);
  const { byteEdit, lineEdit } = editsWith(evil);
  const http1 = fc
    .tuple(fc.constantFrom(...requests.values()), fc.array(fc.oneof(byteEdit, lineEdit), { maxLength: 3 }))
    .map(([bytes, edits]) => edits.reduce(applied, bytes));
  const http2 = fc
    .tuple(generatedFrames(place), fc.array(byteEdit, { maxLength: 2 }))
    .map(([frames, edits]) => Buffer.concat([HELLO, edits.reduce(applied, frames)]));
  const other = fc.oneof(
    fc.array(byteEdit, { maxLength: 2 }).map((edits) => edits.reduce(applied, TLS_HELLO)),
    fc.array(byteEdit, { minLength: 1, maxLength: 2 }).map((edits) => edits.reduce(applied, PREFACE)),
    fc.uint8Array({ maxLength: 60 }).map((bytes) => Buffer.from(bytes)),
  );
  return fc.record({
    bytes: fc.oneof({ weight: 6, arbitrary: http1 }, { weight: 2, arbitrary: http2 }, { weight: 1, arbitrary: other }),
    splits: fc.array(anyFraction, { maxLength: 3 }),
    end: fc.constantFrom("endLater" as const, "endLater", "endLater", "end", "reset", "resetLater"),
  });
}

function applied(bytes: Buffer, edit: Edit): Buffer {
  const at =
    edit.place.kind === "byte" ? Math.floor(edit.place.at * bytes.length) : startOfLine(bytes, edit.place.line);
  return Buffer.concat([bytes.subarray(0, at), edit.bytes, bytes.subarray(at + edit.cut)]);
}

function startOfLine(bytes: Buffer, line: number): number {
  let at = 0;
  for (let count = 0; count < line; count += 1) {
    const next = bytes.indexOf("\r\n", at);
    if (next === -1) return at;
    at = next + 2;
  }
  return at;
}

/** The bytes as they are written. */
export function sendFrom({ bytes, splits, end }: RawInput): Pick<RawSend, "writes" | "end"> {
  const ends = splits.map((fraction) => Math.floor(fraction * bytes.length)).sort((a, b) => a - b);
  const parts = [...ends, bytes.length].map((to, at) => bytes.subarray(ends[at - 1] ?? 0, to));
  return { writes: parts.filter(({ length }) => length > 0), end };
}
