/** Content of the sizes a benchmark asks for, built once and then only handed out. */
interface PreparedContent {
  /** `size` bytes that are the same in every run; a prefix of every greater size. */
  bytes(size: number): Buffer;
  /** One valid JSON object of exactly `size` bytes, at least 2. */
  json(size: number): Buffer;
}

/** Together the prepared JSON objects stay below this; the oldest goes first. */
const MAX_PREPARED_JSON_BYTES = 64 * 1024 * 1024;

/** Creates the cache of prepared content. */
export function createPreparedContent(): PreparedContent {
  let longest: Buffer = Buffer.alloc(0);
  const jsonBySize = new Map<number, Buffer>();
  return {
    bytes(size) {
      if (size > longest.length) longest = deterministicBytes(size);
      return longest.subarray(0, size);
    },
    json(size) {
      const prepared = jsonBySize.get(size) ?? jsonOfSize(size);
      if (!jsonBySize.has(size)) keep(jsonBySize, size, prepared);
      return prepared;
    },
  };
}

function keep(jsonBySize: Map<number, Buffer>, size: number, prepared: Buffer): void {
  let total = size;
  for (const other of jsonBySize.keys()) total += other;
  for (const oldest of jsonBySize.keys()) {
    if (total <= MAX_PREPARED_JSON_BYTES) break;
    jsonBySize.delete(oldest);
    total -= oldest;
  }
  jsonBySize.set(size, prepared);
}

/** Every byte value in an order that does not repeat: xorshift32, https://www.jstatsoft.org/article/view/v008i14 */
function deterministicBytes(size: number): Buffer {
  const bytes = Buffer.allocUnsafe(size);
  let state = 0x9e3779b9;
  for (let i = 0; i < size; i++) {
    state ^= state << 13;
    state ^= state >>> 17;
    state ^= state << 5;
    bytes[i] = state;
  }
  return bytes;
}

/** A list as APIs answer it, filled up by a string; below the size of an empty list, an object of blanks. */
function jsonOfSize(size: number): Buffer {
  const head = '{"object":"list","data":[';
  const tail = '],"padding":"';
  const end = '"}';
  const room = size - head.length - tail.length - end.length;
  if (room < 0) return Buffer.from(`{${" ".repeat(size - 2)}}`);
  const data = itemsUpTo(room);
  return Buffer.concat([
    Buffer.from(head),
    data,
    Buffer.from(tail),
    Buffer.alloc(room - data.length, "x"),
    Buffer.from(end),
  ]);
}

function itemsUpTo(maxBytes: number): Buffer {
  const items: string[] = [];
  let bytes = -1;
  for (let id = 1; ; id++) {
    const item = JSON.stringify({
      id,
      name: `Item ${id}`,
      owner: "Zoë",
      url: `/items/${id}?a=1&b=2`,
      open: id % 2 === 0,
      note: null,
    });
    bytes += Buffer.byteLength(item) + 1;
    if (bytes > maxBytes) return Buffer.from(items.join(","));
    items.push(item);
  }
}

/** One charset with a text that shows a wrong decoding: accents, and trail bytes that look like ASCII (`5c`). */
interface SampleText {
  /** Name in the IANA registry, lower-case. */
  readonly charset: string;
  readonly text: string;
  /** The text in that charset; written out, since Node only encodes UTF-8, UTF-16LE and latin1. */
  readonly bytes: Buffer;
}

const SAMPLES = [
  [
    "utf-8",
    "Grüße – こんにちは – Привет – 🎈",
    "4772c3bcc39f6520e2809320e38193e38293e381abe381a1e381af20e2809320d09fd180d0b8d0b2d0b5d18220e2809320f09f8e88",
  ],
  ["us-ascii", "Plain ASCII: ~!@#", "506c61696e2041534349493a207e214023"],
  ["iso-8859-1", "Crème brûlée, naïve façade, ß ø", "4372e86d65206272fb6ce9652c206e61ef7665206661e76164652c20df20f8"],
  ["iso-8859-2", "Zażółć gęślą jaźń", "5a61bff3b3e62067eab66cb1206a61bcf1"],
  ["iso-8859-15", "Prix: 5 €, œuvre", "507269783a203520a42c20bd75767265"],
  ["windows-1250", "Příliš žluťoučký kůň", "50f8ed6c699a209e6c759d6f75e86bfd206bf9f2"],
  ["windows-1251", "Съешь ещё этих мягких булок", "d1fae5f8fc20e5f9b820fdf2e8f520ecffe3eae8f520e1f3ebeeea"],
  ["windows-1252", "“Crème” – 5 €", "934372e86d6594209620352080"],
  ["koi8-r", "Съешь ещё этих булок", "f3dfc5dbd820c5dda320dcd4c9c820c2d5cccfcb"],
  ["utf-16le", "Grüße 🎈 Привет", "47007200fc00df00650020003cd888df20001f0440043804320435044204"],
  ["utf-16be", "Grüße 🎈 Привет", "0047007200fc00df00650020d83cdf880020041f04400438043204350442"],
  ["shift_jis", "表示ソフト、ｶﾅ、日本語", "955c8ea6835c837483678141b6c5814193fa967b8cea"],
  ["euc-jp", "表示ソフト、日本語", "c9bdbca8a5bda5d5a5c8a1a2c6fccbdcb8ec"],
  ["iso-2022-jp", "表示ソフト、日本語", "1b2442493d3c28253d255525482122467c4b5c386c1b2842"],
  ["gbk", "汉字编码测试", "babad7d6b1e0c2ebb2e2cad4"],
  ["gb18030", "汉字编码测试 🎈", "babad7d6b1e0c2ebb2e2cad4209439bd34"],
  ["big5", "許功蓋，中文", "b35ca55cbb5ca141a4a4a4e5"],
  ["euc-kr", "한국어 텍스트", "c7d1b1b9beee20c5d8bdbac6ae"],
] as const;

/** What `/text?charset=…` answers, by charset. */
export const SAMPLE_TEXTS: ReadonlyMap<string, SampleText> = new Map(
  SAMPLES.map(([charset, text, hex]) => [charset, { charset, text, bytes: Buffer.from(hex, "hex") }]),
);
