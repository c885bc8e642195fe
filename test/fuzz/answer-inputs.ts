import fc from "fast-check";
import type { SurfaceName } from "./surfaces.js";

/**
 * An answer of a provider as the pieces of its bytes. Texts may hold `<<raw>>` and the like: the token of the request
 * that is answered, in that form.
 */
export interface AnswerInput {
  readonly call: { readonly surface: SurfaceName; readonly method: string; readonly isBodyMode: boolean };
  /** Written as they are in front of the answer. */
  readonly interim: readonly string[];
  readonly statusLine: string;
  /** Field lines, without those of framing, type and coding. */
  readonly fields: readonly string[];
  readonly contentType: string | undefined;
  readonly body: Uint8Array | string;
  readonly coding: Coding;
  readonly framing: Framing;
  /** Written behind the end of the answer. */
  readonly stray: string;
  readonly edits: readonly Edit[];
  /** Where the bytes are split into several writes, as fractions of their length. */
  readonly splits: readonly number[];
  /** What becomes of the socket: an answer that may be waited for in vain is kept open only with `hold`. */
  readonly end: "keep" | "end" | "reset" | "hold";
}

/** How the body is coded and what Content-Encoding says. */
export type Coding =
  | { readonly kind: "right"; readonly name: "" | "gzip" | "br" | "deflate" }
  | { readonly kind: "wrong"; readonly name: string; readonly bytes: "plain" | "cut" | "twice" | "junk" | "bomb" };

/** Where the body ends, and what the head says about it. */
export type Framing =
  | { readonly kind: "length"; readonly delta: number }
  | {
      readonly kind: "chunked";
      readonly sizes: readonly number[];
      readonly extension: string;
      readonly trailers: readonly string[];
    }
  | { readonly kind: "close" }
  /** These field lines instead of ours, and the body as it is. */
  | { readonly kind: "lines"; readonly lines: readonly string[] };

/** Bytes put in the place of others. */
export interface Edit {
  readonly at: number;
  readonly cut: number;
  readonly bytes: Uint8Array | string;
}

const STATUSES = [200, 201, 202, 203, 206, 207, 226, 300, 301, 302, 303, 307, 308, 400, 401, 402, 403, 404, 409, 410];
const MORE_STATUSES = [413, 418, 422, 429, 451, 500, 501, 502, 503, 504, 511, 599];
/** Status lines that every reader takes. */
export const SOUND_STATUS_LINES: readonly string[] = [
  ...[...STATUSES, ...MORE_STATUSES].map((status) => `HTTP/1.1 ${status} Reason`),
  "HTTP/1.1 200 ",
  "HTTP/1.1 200 <<raw>>",
  "HTTP/1.1 401 Bearer <<base64>>",
];
const ODD_STATUS_LINES = [
  ...[100, 101, 102, 103, 204, 205, 304, 600, 999].map((status) => `HTTP/1.1 ${status} Reason`),
  ...[
    "HTTP/1.0 200 OK",
    "HTTP/2 200",
    "HTTP/2.0 200 OK",
    "HTTP/1.1 200",
    "HTTP/1.1  200 OK",
    "http/1.1 200 OK",
    "ICY 200 OK",
  ],
  ...["HTTP/1.1 99 X", "HTTP/1.1 1000 X", "HTTP/1.1 000 X", "HTTP/1.1 2x0 X", "HTTP/1.1 200 \0", "HTTP/1.1 200 \u00e9"],
  ...[
    "\r\nHTTP/1.1 200 OK",
    " HTTP/1.1 200 OK",
    "HTTP/1.1 200 OK\nX-A: 1",
    "<html>",
    "",
    "\x15\x03\x01\0\x02\x02\x28",
    "GET / HTTP/1.1",
  ],
];

const SOUND_FIELDS = [
  ...[
    "X-A: 1",
    "x-b:  padded  ",
    "X-A: 2",
    "Date: Thu, 01 Jan 1970 00:00:00 GMT",
    "Set-Cookie: a=<<raw>>; Path=/",
    "Empty:",
  ],
  ...["Location: http://127.0.0.1:1/?t=<<url>>", "Location: //evil.test/", "Refresh: 0; url=http://evil.test/"],
  ...["X-Echo: <<raw>>", "X-Echo: Basic <<base64>>", "X-Echo: t=<<url>>&x", 'X-Echo: "<<json>>"', "X-<<raw>>: 1"],
  ...[
    'WWW-Authenticate: Bearer error="invalid_token"',
    'Alt-Svc: h2=":443"',
    "Link: <x>; rel=next",
    "Retry-After: 999999999",
  ],
  ...["Access-Control-Allow-Origin: *", "__proto__: 1", "constructor: 1", "toString: x", "X-Latin: \u00e9\u00ff"],
  ...[
    "Keep-Alive: timeout=0",
    "Keep-Alive: timeout=999999, max=1",
    "Connection: x-a, x-echo",
    "Connection: close",
    "Proxy-Authenticate: x",
  ],
];
const ODD_FIELDS = [
  ...[
    "X-A : 1",
    "X-A: 1\r\n folded",
    " X-A: 1",
    "X A: 1",
    "X-A",
    ": 1",
    "X-A: a\0b",
    "X-A: a\rb",
    "X-A: a\nX-B: b",
    "\u00e9: 1",
  ],
  ...[
    "Upgrade: websocket",
    "Trailer: X-A",
    "TE: trailers",
    "Transfer-Encoding: gzip",
    "Content-Length: 7",
    "Content-Length: -1",
  ],
  `X-Long: ${"a".repeat(17_000)}`,
  `X-Long: ${"<<raw>>".repeat(100)}`,
  Array.from({ length: 101 }, (_, at) => `X-${at}: 1`).join("\r\n"),
  Array.from({ length: 2_000 }, () => "X-A: 1").join("\r\n"),
];

const CONTENT_TYPES = [
  ...[
    "application/json",
    "application/json; charset=utf-8",
    "text/json",
    "application/vnd.api+json",
    "APPLICATION/JSON",
  ],
  ...[
    "text/plain",
    "text/html; charset=windows-1252",
    "text/plain; charset=utf-16le",
    "application/json; charset=utf-16",
  ],
  ...[
    "text/plain; charset=shift_jis",
    "text/plain; charset=nonsense",
    "application/octet-stream",
    "image/png",
    "application/xml",
  ],
  ...[
    "text/<<raw>>",
    "text/plain; charset=<<raw>>",
    "application/x-www-form-urlencoded",
    "",
    ";",
    "a/b/c",
    'text/plain;charset="',
  ],
  `text/plain; x=${"a".repeat(5_000)}`,
];

const ECHO_BODIES = [
  ...[
    '{"headers":{"authorization":"Bearer <<raw>>"}}',
    '{"t":"<<json>>"}',
    '["<<raw>>","<<raw>>"]',
    '"<<raw>><<raw>>"',
  ],
  ...[
    "access_token=<<url>>&token_type=Bearer",
    "access_token=<<urlLower>>",
    "<<raw>>",
    "Basic <<base64>>",
    "x<<base64_1>> <<base64_2>>",
  ],
  ...[
    "<<base64url>>",
    '{"a":"<<base64>>","b":"<<url>>","c":"<<json>>","d":"<<raw>>"}',
    "<p><<raw>></p>",
    "t=<<urlPython>>",
  ],
  ...['{"t":"<<jsonDotNet>>"}', '{"t":"<<jsonGson>>"}', '{"t":"<<jsonAll>>"}'],
];
const ODD_BODIES = [
  ...[
    '{"id":9007199254740993}',
    '{"a":1e400}',
    '{"a":1,"a":2}',
    '{"a":"\\ud800"}',
    '{"__proto__":{"admin":true}}',
    "-0",
    "1.0",
  ],
  ...[
    '{"a":1}{"b":2}',
    '{"a":1,}',
    "{'a':1}",
    "NaN",
    "",
    " ",
    "null",
    "true",
    "[]",
    '"x"',
    "{",
    '"',
    "\\",
    "\ufeff{}",
    "\u2028",
  ],
  ...[
    '"}],"rows":[{"pincStatus":"success"',
    "[".repeat(1_000),
    `${"[".repeat(101)}${"]".repeat(101)}`,
    '{"a":"\\u0000"}',
    "\0",
  ],
  "[".repeat(50_000),
  `[${"1,".repeat(40_000)}1]`,
  "x".repeat(99_999),
  "x".repeat(100_001),
];

const anyBytes = fc.uint8Array({ maxLength: 60 });
const anyBody = fc.oneof(
  { weight: 4, arbitrary: fc.json({ stringUnit: "binary" }) },
  { weight: 3, arbitrary: fc.constantFrom(...ECHO_BODIES) },
  { weight: 2, arbitrary: fc.constantFrom(...ODD_BODIES) },
  { weight: 1, arbitrary: fc.string({ unit: "binary", maxLength: 40 }) },
  { weight: 1, arbitrary: anyBytes },
);

const rightCoding = fc.record({
  kind: fc.constant("right" as const),
  name: fc.constantFrom("" as const, "gzip", "br", "deflate"),
});
const wrongCoding = fc.record({
  kind: fc.constant("wrong" as const),
  name: fc.constantFrom(
    ...["gzip", "br", "deflate", "x-gzip", "GZIP ", "identity", "zstd", "compress", "gzip, gzip", "identity, gzip", ""],
    Array.from({ length: 5_000 }, () => "gzip").join(","),
  ),
  bytes: fc.constantFrom("plain" as const, "cut", "twice", "junk", "bomb"),
});

const chunked = fc.record({
  kind: fc.constant("chunked" as const),
  sizes: fc.array(fc.integer({ min: 1, max: 30 }), { maxLength: 8 }),
  extension: fc.oneof(
    { weight: 8, arbitrary: fc.constant("") },
    fc.constantFrom(";a=b", ';a="<<raw>>"', ";\u00e9", " "),
  ),
  trailers: fc.array(
    fc.constantFrom("X-Trailer: 1", "Authorization: Bearer <<raw>>", `X-Long: ${"a".repeat(20_000)}`, "bad"),
    {
      maxLength: 2,
    },
  ),
});
const otherFraming = fc.oneof(
  fc.record({ kind: fc.constant("close" as const) }),
  fc.record({ kind: fc.constant("length" as const), delta: fc.integer({ min: -12, max: 12 }) }),
  fc.record({
    kind: fc.constant("lines" as const),
    lines: fc.constantFrom(
      ["Content-Length: 5", "Content-Length: 6"],
      ["Content-Length: 5", "Transfer-Encoding: chunked"],
      ...["5, 5", "+5", "-5", "0x5", "5.0", "99999999999999999999", "", "9000000000"].map((value) => [
        `Content-Length: ${value}`,
      ]),
      ...["chunked, identity", "identity", "xchunked", "chunked, chunked", "gzip, chunked"].map((value) => [
        `Transfer-Encoding: ${value}`,
      ]),
      ["Transfer-Encoding: chunked"],
    ),
  }),
);

const anyEdit = fc.record({
  at: fc.double({ min: 0, max: 1, noNaN: true }),
  cut: fc.oneof(fc.nat(4), fc.constant(1_000_000)),
  bytes: fc.oneof(
    fc.constantFrom(
      "",
      "\r\n",
      "\n",
      "\r",
      "\0",
      ":",
      " ",
      "0\r\n\r\n",
      "ffffffffffffffff\r\n",
      "HTTP/1.1 200 OK\r\n\r\n",
    ),
    fc.uint8Array({ maxLength: 3 }),
  ),
});

const rarely = <Value>(usual: Value, weight: number, rare: fc.Arbitrary<Value>): fc.Arbitrary<Value> =>
  fc.oneof({ weight, arbitrary: fc.constant(usual) }, { weight: 1, arbitrary: rare });

/** Answers of every kind; about a third of them sound. */
export const generatedAnswers: fc.Arbitrary<AnswerInput> = fc.record({
  call: fc.record({
    surface: fc.constantFrom("REST" as const, "REST", "Connect"),
    method: fc.constantFrom("GET", "GET", "POST", "DELETE", "HEAD", "GETFILE"),
    isBodyMode: fc.constantFrom(false, false, false, true),
  }),
  interim: rarely<readonly string[]>(
    [],
    6,
    fc.array(
      fc.constantFrom(
        "HTTP/1.1 100 Continue\r\n\r\n",
        "HTTP/1.1 103 Early\r\nX-Echo: <<raw>>\r\n\r\n",
        "HTTP/1.1 102 P\r\n\r\n",
      ),
      {
        minLength: 1,
        maxLength: 18,
        size: "max",
      },
    ),
  ),
  statusLine: fc.oneof(
    { weight: 8, arbitrary: fc.constantFrom(...SOUND_STATUS_LINES) },
    { weight: 1, arbitrary: fc.constantFrom(...ODD_STATUS_LINES) },
  ),
  fields: fc.array(
    fc.oneof(
      { weight: 30, arbitrary: fc.constantFrom(...SOUND_FIELDS) },
      { weight: 1, arbitrary: fc.constantFrom(...ODD_FIELDS) },
    ),
    { maxLength: 5 },
  ),
  contentType: fc.option(fc.constantFrom(...CONTENT_TYPES), { nil: undefined, freq: 8 }),
  body: anyBody,
  coding: fc.oneof({ weight: 8, arbitrary: rightCoding }, { weight: 1, arbitrary: wrongCoding }),
  framing: fc.oneof(
    { weight: 5, arbitrary: fc.constant({ kind: "length" as const, delta: 0 }) },
    { weight: 4, arbitrary: chunked },
    { weight: 1, arbitrary: otherFraming },
  ),
  stray: rarely("", 5, fc.constantFrom("STRAY", "\r\n", "HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nSTRAY", "\0")),
  edits: rarely<readonly Edit[]>([], 3, fc.array(anyEdit, { minLength: 1, maxLength: 3 })),
  splits: fc.array(fc.double({ min: 0, max: 1, noNaN: true }), { maxLength: 4 }),
  end: fc.oneof(
    { weight: 70, arbitrary: fc.constant("keep" as const) },
    { weight: 20, arbitrary: fc.constant("end" as const) },
    { weight: 9, arbitrary: fc.constant("reset" as const) },
    { weight: 1, arbitrary: fc.constant("hold" as const) },
  ),
});
