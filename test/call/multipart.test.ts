import fc from "fast-check";
import { describe, expect, it, vi } from "vitest";
import { formDataFromJson, relatedFromJson } from "../../src/call/multipart.js";
import { atOnce } from "../../src/lib/turns.js";
import { RelayError } from "../../src/model/errors.js";
import { ROOMY } from "../support/roomy.js";

const PNG = Buffer.from([0x89, 0x50, 0x4e, 0x47, 0x0d, 0x0a, 0x1a, 0x0a, 0x00, 0xff]);
const PNG_TEXT = PNG.toString("base64");

describe("formDataFromJson()", () => {
  it("makes fields of scalars and a file of a member with content (compat C12)", () => {
    const made = atOnce(
      formDataFromJson(
        Buffer.from(`{"caption":"c","photo":{"content":"QUI=","type":"image/png","name":"p.png"}}`),
        "BOUNDARY",
        ROOMY,
      ),
    );
    expect(made.contentType).toBe("multipart/form-data; boundary=BOUNDARY");
    expect(made.body.toString()).toBe(
      [
        "--BOUNDARY",
        'Content-Disposition: form-data; name="caption"',
        "",
        "c",
        "--BOUNDARY",
        'Content-Disposition: form-data; name="photo"; filename="p.png"',
        "Content-Type: image/png",
        "",
        "AB",
        "--BOUNDARY--",
        "",
      ].join("\r\n"),
    );
  });

  it("makes a part of each element of an array where the caller asks for it, files among them", () => {
    const json = '{"tag":["x",1.0,null,{"b":1}],"none":[],"file":[{"content":"QQ=="},"text"]}';
    const { body } = atOnce(formDataFromJson(Buffer.from(json), "B", ROOMY, true));
    expect(body.toString().split("--B\r\n").slice(1)).toEqual([
      'Content-Disposition: form-data; name="tag"\r\n\r\nx\r\n',
      'Content-Disposition: form-data; name="tag"\r\n\r\n1.0\r\n',
      'Content-Disposition: form-data; name="tag"\r\n\r\n\r\n',
      'Content-Disposition: form-data; name="tag"\r\n\r\n{"b":1}\r\n',
      'Content-Disposition: form-data; name="file"; filename="file"\r\nContent-Type: application/octet-stream\r\n\r\nA\r\n',
      'Content-Disposition: form-data; name="file"\r\n\r\ntext\r\n--B--\r\n',
    ]);
  });

  it("refuses a name that is repeated beyond what may stand in front of parts", () => {
    const json = Buffer.from(JSON.stringify({ ["n".repeat(10_000)]: Array(1_000_000).fill(1) }));
    expect(() => atOnce(formDataFromJson(json, "B", ROOMY, true))).toThrow(
      "makes the headers of all parts too long in total",
    );
  });

  it.each<[string, string[][]]>([
    [
      '{"a":null,"b":"","c":1.0,"d":true}',
      [
        ["a", ""],
        ["b", ""],
        ["c", "1.0"],
        ["d", "true"],
      ],
    ],
    [
      '{"10":"x","9":"y","10":"z","__proto__":"p"}',
      [
        ["10", "x"],
        ["9", "y"],
        ["10", "z"],
        ["__proto__", "p"],
      ],
    ],
    [
      '{"a":[1, "x"],"b":{"c" : 1},"d":[],"e":{}}',
      [
        ["a", '[1, "x"]'],
        ["b", '{"c" : 1}'],
        ["d", "[]"],
        ["e", "{}"],
      ],
    ],
    [
      '{"a":{"content":{"x":1}},"b":{"content":null},"c":{"content":1}}',
      [
        ["a", '{"content":{"x":1}}'],
        ["b", '{"content":null}'],
        ["c", '{"content":1}'],
      ],
    ],
    ['{"a":[{"content":"QQ=="},1]}', [["a", '[{"content":"QQ=="},1]']]],
    ['{"a":"one\\r\\n--BOUNDARY--\\r\\ntwo"}', [["a", "one\r\n--BOUNDARY--\r\ntwo"]]],
    ['{"a":"data:image/png;base64,QQ=="}', [["a", "data:image/png;base64,QQ=="]]],
  ])("makes fields of %s", async (json, expected) => {
    const form = await parse(atOnce(formDataFromJson(Buffer.from(json), "UNIQUE", ROOMY)));
    expect([...form]).toEqual(expected);
  });

  it.each<[string, Array<[field: string, name: string, type: string, bytes: Buffer]>]>([
    [`{"f":{"content":"${PNG_TEXT}"}}`, [["f", "f", "application/octet-stream", PNG]]],
    [`{"f":{"content":"","type":"","name":""}}`, [["f", "", "application/octet-stream", Buffer.alloc(0)]]],
    [
      `{"f":{"content":"${PNG_TEXT}","type":null,"name":null,"size":10}}`,
      [["f", "f", "application/octet-stream", PNG]],
    ],
    [`{"f":{"content":"data:image/png;base64,${PNG_TEXT}","type":"image/png"}}`, [["f", "f", "image/png", PNG]]],
    [`{"f":{"content":"x","content":"${PNG.toString("base64url")}"}}`, [["f", "f", "application/octet-stream", PNG]]],
    [
      `{"f":{"content":"${PNG_TEXT.replaceAll("/", "\\/")}","name":"\\u00e9.png"}}`,
      [["f", "é.png", "application/octet-stream", PNG]],
    ],
    [
      '{"files":[{"content":"QQ==","name":"a"},{"content":"Qg","name":"b","type":"text/plain"}]}',
      [
        ["files", "a", "application/octet-stream", Buffer.from("A")],
        ["files", "b", "text/plain", Buffer.from("B")],
      ],
    ],
  ])("makes files of %s", async (json, expected) => {
    const form = await parse(atOnce(formDataFromJson(Buffer.from(json), "UNIQUE", ROOMY)));
    const files = await Promise.all(
      [...form].map(async ([field, file]) => {
        if (typeof file === "string") throw new Error("a field");
        return [field, file.name, file.type, Buffer.from(await file.arrayBuffer())];
      }),
    );
    expect(files).toEqual(expected);
  });

  it.each([
    ["payload.f.content", '{"f":{"content":"not base64"}}'],
    ["payload.f.content", '{"f":{"content":"QQ==\\n"}}'],
    ["payload.f.type", '{"f":{"content":"QQ==","type":1}}'],
    ["payload.f.type", '{"f":{"content":"QQ==","type":"png"}}'],
    ["payload.f.type", '{"f":{"content":"QQ==","type":"image/png\\r\\nX-Evil: 1"}}'],
    ["payload.f.type", '{"f":{"content":"QQ==","type":"image/png\\n"}}'],
    ["payload.f.type", '{"f":{"content":"QQ==","type":"image/png; a=\\u0000"}}'],
    ["payload.f.type", '{"f":{"content":"QQ==","type":"image/p\u00e9g"}}'],
    ["payload.f.type", '{"f":{"content":"QQ==","type":"image /png"}}'],
    ["payload.f.name", '{"f":{"content":"QQ==","name":["x"]}}'],
    ["payload.files[1].content", '{"files":[{"content":"QQ=="},{"content":"Q"}]}'],
    ["payload member 2", '{"a":1,"\\r\\nsecret":{"content":"Q"}}'],
    ["payload member 2", `{"a":1,"${"x".repeat(16_385)}":1}`],
    ["payload.f", `{"f":{"content":"QQ==","name":"${"x".repeat(16_385)}"}}`],
    ["payload.f[1]", `{"f":[{"content":""},{"content":"","name":"${"x".repeat(16_385)}"}]}`],
    ["payload member 2", `{"a":1,"${"x".repeat(16_384)}":[${'{"content":""},'.repeat(300)}{"content":""}]}`],
  ])("refuses, and names %s", (field, json) => {
    expect(() => atOnce(formDataFromJson(Buffer.from(json), "B", ROOMY))).toThrow(errorThatNames(field));
  });

  it("tells of its bytes as it writes them, and ends where there is no room for more", () => {
    const json = Buffer.from(JSON.stringify({ a: Array(100_000).fill(1), f: { content: PNG_TEXT }, b: null }));
    let held = 0;
    let most = Number.POSITIVE_INFINITY;
    const memory = {
      reserve(bytes: number) {
        held += bytes;
        return held <= most;
      },
    };
    expect(atOnce(formDataFromJson(json, "B", memory, true)).body).toHaveLength(held);
    expect(held).toBeGreaterThan(25 * json.length);
    held = 0;
    most = 1_000_000;
    expect(() => atOnce(formDataFromJson(json, "B", memory, true))).toThrow(
      expect.objectContaining({ reason: "OVERLOADED" }),
    );
    expect(held).toBeLessThan(1_001_000);
  });

  it("pauses among many files, also of nothing", () => {
    const files = Array.from({ length: 200 }, () => '{"content":""}');
    expect([...formDataFromJson(Buffer.from(`{"f":[${files.join()}]}`), "B", ROOMY)].length).toBeGreaterThanOrEqual(
      200,
    );
    const parts = Array.from({ length: 5000 }, (_, at) => `"contentPart${at}":{"content":{},"contentType":"a/b"}`);
    expect([...relatedFromJson(Buffer.from(`{${parts.join()}}`), "B", ROOMY)].length).toBeGreaterThan(3 * 3);
  });

  it("refuses a long name or type of a file without decoding all of it", () => {
    const long = "\\u0061".repeat(500_000);
    const parse = vi.spyOn(JSON, "parse");
    for (const member of ["name", "type"]) {
      const json = Buffer.from(`{"f":{"content":"","${member}":"${long}"}}`);
      expect(() => atOnce(formDataFromJson(json, "B", ROOMY))).toThrow(errorThatNames("payload.f"));
    }
    const longest = Math.max(...parse.mock.calls.map(([text]) => text.length));
    parse.mockRestore();
    expect(longest).toBeLessThan(140_000);
  });

  it("looks through no long name, which is in pieces", () => {
    const json = Buffer.from(`{"${"a".repeat(500_000)}":{}}`);
    const test = vi.spyOn(RegExp.prototype, "test");
    for (const made of [formDataFromJson(json, "B", ROOMY), relatedFromJson(json, "B", ROOMY)])
      expect(() => atOnce(made)).toThrow(errorThatNames("payload member 1"));
    const longest = Math.max(0, ...test.mock.calls.map(([text]) => text.length));
    test.mockRestore();
    expect(longest).toBeLessThan(1000);
  });

  it("pauses among many members, also of nothing", () => {
    const members = Array.from({ length: 200 }, (_, at) => `"${at}${"x".repeat(4000)}":null`);
    expect([...formDataFromJson(Buffer.from(`{${members.join()}}`), "B", ROOMY)].length).toBeGreaterThan(3 * 10);
  });

  it.each([
    ['a"; filename="evil', 'name="a%22; filename=%22evil"'],
    ["a\r\nX-Evil: 1\r\n\r\nbody", 'name="a%0D%0AX-Evil: 1%0D%0A%0D%0Abody"'],
    ["a\nb\rc", 'name="a%0Ab%0Dc"'],
    ["a\u0000\t\u007f\u0085", 'name="a%00%09%7F%C2%85"'],
    ["C:\\a\\", 'name="C:\\a%5C"'],
    ["é%22\u2028😀", 'name="é%22\u2028😀"'],
  ])("writes the name %j on one line, inside its quotes", (name, expected) => {
    const field = atOnce(formDataFromJson(Buffer.from(JSON.stringify({ [name]: "v" })), "B", ROOMY)).body.toString();
    expect(field).toBe(`--B\r\nContent-Disposition: form-data; ${expected}\r\n\r\nv\r\n--B--\r\n`);
    const file = atOnce(
      formDataFromJson(Buffer.from(JSON.stringify({ f: { content: "", name } })), "B", ROOMY),
    ).body.toString();
    expect(file.split("\r\n")[1]).toBe(`Content-Disposition: form-data; name="f"; file${expected}`);
  });

  it("is read back by a form parser", async () => {
    const name = fc.string({ unit: "grapheme", minLength: 1 }).filter((text) => !/%(?:22|0[ad])|\\$/i.test(text));
    const file = fc.record({ bytes: fc.uint8Array(), name });
    const members = fc.dictionary(name, fc.oneof(fc.string({ unit: "grapheme" }), file), { minKeys: 1 });
    const run = fc.asyncProperty(members, async (object) => {
      const payload = Object.entries(object).map(([key, value]) => {
        const json = typeof value === "string" ? value : { content: base64(value.bytes), name: value.name };
        return `${JSON.stringify(key)}:${JSON.stringify(json)}`;
      });
      const form = await parse(
        atOnce(formDataFromJson(Buffer.from(`{${payload.join(",")}}`), "UNIQUE0123456789", ROOMY)),
      );
      expect([...form.keys()]).toEqual(Object.keys(object));
      for (const [key, value] of form) {
        const sent = object[key];
        if (typeof value === "string" || typeof sent === "string" || sent === undefined) expect(value).toBe(sent);
        else expect([value.name, base64(await value.arrayBuffer())]).toEqual([sent.name, base64(sent.bytes)]);
      }
    });
    await fc.assert(run, { seed: 20261127, numRuns: 200 });
  });
});

describe("relatedFromJson()", () => {
  it("makes parts in the order written: JSON as written, binary from base64 (compat C9)", () => {
    const made = atOnce(
      relatedFromJson(
        Buffer.from(
          '{"contentPart1":{"content":{ "snippet":{"n":1.0} },"contentType":"application/json"},' +
            '"contentPart0":{"content":"QUI=","contentType":"video/mp4"}}',
        ),
        "BOUNDARY",
        ROOMY,
      ),
    );
    expect(made.contentType).toBe("multipart/related; boundary=BOUNDARY");
    expect(made.body.toString()).toBe(
      [
        "--BOUNDARY",
        "Content-Type: application/json",
        "",
        '{ "snippet":{"n":1.0} }',
        "--BOUNDARY",
        "Content-Type: video/mp4",
        "",
        "AB",
        "--BOUNDARY--",
        "",
      ].join("\r\n"),
    );
  });

  it.each([
    ['{"content":[1, 2]}', "application/json", "[1, 2]"],
    ['{"content":[1]," contentType":""}', "application/json", "[1]"],
    [
      '{"content":{"a":1},"contentType":"application/vnd.x+json; charset=UTF-8"}',
      "application/vnd.x+json; charset=UTF-8",
      '{"a":1}',
    ],
    ['{"content":{},"contentType":"text/plain"}', "text/plain", "{}"],
    ['{"content":1.0,"contentType":"application/json"}', "application/json", "1.0"],
    ['{"content":"{\\"a\\":1}","contentType":"application/json"}', "application/json", '{"a":1}'],
    ['{"content":"h\\u00e9llo","contentType":"text/plain"}', "text/plain", "héllo"],
    ['{"content":"QQ==","contentType":"TEXT/CSV"}', "TEXT/CSV", "QQ=="],
    ['{"content":"<a/>","contentType":"application/atom+xml"}', "application/atom+xml", "<a/>"],
    ['{"content":"PHN2Zy8+","contentType":"image/svg+xml"}', "image/svg+xml", "<svg/>"],
    ['{"content":"data:a/b;base64,QQ==","contentType":"application/pdf"}', "application/pdf", "A"],
    ['{"content":"","contentType":"application/octet-stream"}', "application/octet-stream", ""],
  ])("makes a part of %s", (part, type, content) => {
    const { body } = atOnce(relatedFromJson(Buffer.from(`{"contentPart0":${part}}`), "B", ROOMY));
    expect(body.toString()).toBe(`--B\r\nContent-Type: ${type}\r\n\r\n${content}\r\n--B--\r\n`);
  });

  it.each([
    ["payload.contentPart0.content", '{"contentPart0":1}'],
    ["payload.contentPart0.content", '{"contentPart0":{}}'],
    ["payload.contentPart0.content", '{"contentPart0":{"content":null,"contentType":"a/b"}}'],
    ["payload.contentPart0.contentType", '{"contentPart0":{"content":"QQ=="}}'],
    ["payload.contentPart0.contentType", '{"contentPart0":{"content":"QQ==","contentType":""}}'],
    ["payload.contentPart0.contentType", '{"contentPart0":{"content":{},"contentType":{}}}'],
    ["payload.contentPart0.contentType", '{"contentPart0":{"content":{},"contentType":"a/b\\r\\n\\r\\nx"}}'],
    [
      "payload.contentPart3.content",
      '{"contentPart0":{"content":{}},"contentPart3":{"content":"?","contentType":"a/b"}}',
    ],
    ["payload.contentPart", '{"contentPart":{"content":{}}}'],
    ["payload.contentPart0x", '{"contentPart0x":{"content":{}}}'],
    ["payload.metadata", '{"contentPart0":{"content":{}},"metadata":{}}'],
    ["payload member 1", '{"\\u0000":{"content":{}}}'],
  ])("refuses, and names %s", (field, json) => {
    expect(() => atOnce(relatedFromJson(Buffer.from(json), "B", ROOMY))).toThrow(errorThatNames(field));
  });
});

async function parse({ body, contentType }: { body: Buffer; contentType: string }): Promise<FormData> {
  return await new Response(body, { headers: { "content-type": contentType } }).formData();
}

function base64(bytes: Uint8Array | ArrayBuffer): string {
  return Buffer.from(bytes as Uint8Array).toString("base64");
}

function errorThatNames(field: string): unknown {
  return expect.toSatisfy(
    (error: unknown) =>
      error instanceof RelayError &&
      error.reason === "CALL_FORMAT_ERROR" &&
      (error.message.startsWith(`${field} `) || error.message.startsWith(`${field}.`)),
  );
}
