import fc from "fast-check";
import {
  CONTENT_TYPES,
  ECHO_BODIES,
  ODD_BODIES,
  ODD_FIELDS,
  ODD_STATUS_LINES,
  SOUND_FIELDS,
  SOUND_STATUS_LINES,
  SPELLED_BODIES,
} from "./answer-values.js";
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

const anyBytes = fc.uint8Array({ maxLength: 60 });
const anyBody = fc.oneof(
  { weight: 4, arbitrary: fc.json({ stringUnit: "binary" }) },
  { weight: 3, arbitrary: fc.constantFrom(...ECHO_BODIES) },
  { weight: 2, arbitrary: fc.constantFrom(...SPELLED_BODIES) },
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
    surface: fc.constantFrom("REST" as const, "REST", "Connect", "via"),
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
