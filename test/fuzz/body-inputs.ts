import fc from "fast-check";

/** What the text of a call is broken with (threats 2F, I23, U38, U39). */
function breakagesFor(evil: string): string[] {
  return [
    ...'{}[]":,\\'.split(""),
    ...[",,", "}}", "{{", "//x\n", "/*x*/", "'", "NaN", "Infinity", "-", "01", "+1", "1e", "tru", "nul", "undefined"],
    ...["\0", "\n", "\ufeff", "\u2028", "\ud83d", "\\ud800", "\\u0000", "\\x41", "\t", " ".repeat(1_000)],
    ...[`"url":${JSON.stringify(evil)},`, `"url":["${evil}"],`, `"url":{"href":"${evil}"},`, '"url":null,', '"url":1,'],
    ...['"method":"DELETE",', '"headers":[],', '"headers":{"host":"evil"},', '"payload":[],', '"query_string":{},'],
    ...['"__proto__":{"url":"x"},', '"socketPath":"/var/run/docker.sock",', '"dispatcher":{},', '"path":"/evil",'],
    ...['"body":"AAAA",', '"body":"!",', '"maxRedirections":5,', '"u\\u0072l":"x",', "[".repeat(200), "{".repeat(200)],
  ];
}

/** Bytes that no UTF-8 text has. */
const BYTES = [[0xff], [0xfe, 0xff], [0xc0, 0xaf], [0xed, 0xa0, 0x80], [0xf8], [0x80], [0xef, 0xbb, 0xbf], [0]];

/** The text of a good call, mutated as bytes one to four times. */
export function generatedBodies(url: string, evil: string): fc.Arbitrary<Buffer> {
  const good = JSON.stringify({
    url,
    method: "POST",
    headers: { "x-a": "1" },
    payload: { a: [1, "b"] },
    queryString: { c: 2 },
  });
  const start = fc.constantFrom(
    good,
    JSON.stringify({ url, method: "GET" }),
    "null",
    "[]",
    '"x"',
    "",
    "{}",
    `[${good}]`,
  );
  const piece = fc.oneof(
    fc.constantFrom(...breakagesFor(evil)).map((text) => Buffer.from(text)),
    fc.constantFrom(...BYTES).map((bytes) => Buffer.from(bytes)),
    fc.uint8Array({ maxLength: 4 }).map((bytes) => Buffer.from(bytes)),
  );
  const edit = fc.record({ at: fc.double({ min: 0, max: 1, noNaN: true }), cut: fc.nat(3), piece });
  return fc
    .tuple(
      fc.oneof({ weight: 6, arbitrary: fc.constant(good) }, { weight: 1, arbitrary: start }),
      fc.array(edit, { minLength: 1, maxLength: 4 }),
    )
    .map(([text, edits]) => edits.reduce(applied, Buffer.from(text)));
}

function applied(bytes: Buffer, edit: { readonly at: number; readonly cut: number; readonly piece: Buffer }): Buffer {
  const at = Math.floor(edit.at * bytes.length);
  return Buffer.concat([bytes.subarray(0, at), edit.piece, bytes.subarray(at + edit.cut)]);
}

/** Bodies that are no call at all, and good ones in an encoding that is not UTF-8. */
export function listBodies(url: string): Buffer[] {
  const good = JSON.stringify({ url, method: "GET" });
  return [
    ...["", " ", "null", "[]", "{}", '"x"', "1", "true", " ".repeat(1_048_576), `${good}${good}`, `${good},`].map(
      (text) => Buffer.from(text),
    ),
    Buffer.from(`\ufeff${good}`),
    Buffer.from(good, "utf16le"),
    Buffer.from(`\ufeff${good}`, "utf16le"),
    Buffer.concat([Buffer.from(good), Buffer.from([0])]),
    Buffer.from("[".repeat(1_000_000)),
    Buffer.from('{"a":'.repeat(100_000)),
  ];
}
