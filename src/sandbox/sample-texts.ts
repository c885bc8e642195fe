/** One charset with a text that shows a wrong decoding: accents, and trail bytes that look like ASCII (`5c`). */
export interface SampleText {
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
