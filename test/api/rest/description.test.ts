import { describe, expect, it, vi } from "vitest";
import { descriptionFromBody, descriptionFromDotted } from "../../../src/api/rest/description.js";
import { atOnce } from "../../../src/lib/turns.js";

const readDotted = (dotted: Parameters<typeof descriptionFromDotted>[0]) => atOnce(descriptionFromDotted(dotted));
const read = (text: string | Buffer) => atOnce(descriptionFromBody(Buffer.from(text as string)));
const text = (bytes: Uint8Array | undefined) => (bytes === undefined ? undefined : Buffer.from(bytes).toString());
const call = (members: string) => `{"url":"https://a/","method":"GET"${members}}`;

describe("descriptionFromBody()", () => {
  it("decodes no more of a long url than is needed to refuse it, and looks through no long name", () => {
    const parse = vi.spyOn(JSON, "parse");
    const { url } = read(`{"url":"https://a/${"\\u0061".repeat(500_000)}","method":"GET"}`);
    const decoded = Math.max(...parse.mock.calls.map(([json]) => json.length));
    parse.mockRestore();
    expect(url.length).toBeGreaterThan(8192);
    expect(decoded).toBeLessThan(140_000);
    const [test, replaceAll] = [vi.spyOn(RegExp.prototype, "test"), vi.spyOn(String.prototype, "replaceAll")];
    expect(() => read(`{"${"a".repeat(500_000)}":1}`)).toThrow("A key of the request body is not a field of a call");
    const searched = [...test.mock.calls.map(([word]) => word), ...replaceAll.mock.contexts];
    vi.restoreAllMocks();
    expect(Math.max(0, ...searched.map((word) => String(word).length))).toBeLessThan(1000);
  });

  it.each([
    ["nothing", "", "JSON object"],
    ["null", "null", "JSON object"],
    ["an array", "[]", "JSON object"],
    ["a string", '"x"', "JSON object"],
    ["two values", "{}{}", "JSON object"],
    ["a trailing comma", '{"url":"a",}', "JSON object"],
    ["a comment", "{/**/}", "JSON object"],
    ["NaN", '{"url":NaN}', "JSON object"],
    ["single quotes", "{'url':'a'}", "JSON object"],
    ["white space", " ".repeat(100_000), "JSON object"],
    ["bytes that are no UTF-8", Buffer.from([0x7b, 0xff, 0x7d]), "UTF-8"],
    ["UTF-16", Buffer.from("{}", "utf16le"), "JSON object"],
    ["deep nesting", call(`,"payload":{"a":${"[".repeat(100)}${"]".repeat(100)}}`), "64 levels"],
    ["very deep nesting", "[".repeat(1_000_000), "64 levels"],
    [
      "too many keys",
      call(`,"payload":{${Array.from({ length: 10_001 }, (_, at) => `"k${at}":1`).join()}}`),
      "10000 keys",
    ],
    ["no url", '{"method":"GET"}', "url"],
    ["an empty url", '{"url":"","method":"GET"}', "url"],
    ["a url that is an array", '{"url":["https://a/"],"method":"GET"}', "url"],
    ["a url that is an object", '{"url":{"href":"https://a/"},"method":"GET"}', "url"],
    ["a url that is null", '{"url":null,"method":"GET"}', "url"],
    ["url twice", '{"url":"https://a/","url":"https://b/","method":"GET"}', "url"],
    ["url twice, once escaped", '{"url":"https://a/","\\u0075rl":"https://b/","method":"GET"}', "url"],
    ["queryString by both names", call(',"queryString":{},"query_string":{}'), "queryString"],
    ["no method", '{"url":"https://a/"}', "method"],
    ["a method that is a number", '{"url":"https://a/","method":1}', "method"],
    ["an unknown field", call(',"socketPath":"/var/run/docker.sock"'), "socketPath"],
    ["__proto__ as a field", call(',"__proto__":{}'), "__proto__"],
    ["a field name that is not fit to repeat", call(',"a\\r\\nb":1'), "A key"],
    ["a payload that is an array", call(',"payload":[1]'), "payload"],
    ["a payload that is a string", call(',"payload":"{}"'), "payload"],
    ["headers that are an array", call(',"headers":["a: b"]'), "headers"],
    ["a header that is an object", call(',"headers":{"a":{}}'), "headers"],
    ["a header that is null", call(',"headers":{"a":null}'), "headers"],
    ["headers of many bytes", call(`,"headers":{"a":"${"☕".repeat(22_000)}"}`), "8 KiB"],
    ["a header twice", call(',"headers":{"a":"1","a":"2"}'), "headers"],
    ["a queryString that is a string", call(',"queryString":"a=b"'), "queryString"],
    ["a body that is no base64", call(',"body":"a b"'), "body"],
  ])("refuses %s and says what is wrong", (_what, body, words) => {
    expect(() => read(body)).toThrow(
      expect.objectContaining({ reason: "CALL_FORMAT_ERROR", message: expect.stringContaining(words) }),
    );
  });

  it("never repeats the parser's words, which quote the input", () => {
    expect(() => read("SECRETTOKEN12345 leaked")).toThrow(
      expect.objectContaining({ message: expect.not.stringContaining("SECRET") }),
    );
  });

  it.each([
    "",
    ',"payload":null,"headers":null,"queryString":null,"body":null,"explodeArrays":null',
    ',"headers":{},"queryString":{ },"body":"","explode_arrays":false',
  ])("takes missing, null and empty members for no information: %s", (members) => {
    expect(read(call(members))).toEqual({
      url: "https://a/",
      method: "GET",
      payload: undefined,
      headers: [],
      queryString: undefined,
      explodeArrays: false,
      body: undefined,
    });
  });

  it("keeps a payload without members, which may be a body", () => {
    expect(text(read(call(',"payload":{ }')).payload)).toBe("{ }");
  });

  it("reads whether arrays are to be exploded, in JSON and in the query", () => {
    for (const name of ["explodeArrays", "explode_arrays"]) {
      expect(read(call(`,"${name}":true`)).explodeArrays).toBe(true);
      const dotted = [
        ["url", "https://a/"],
        ["method", "GET"],
        [name, "true"],
      ] as const;
      expect(atOnce(descriptionFromDotted(dotted)).explodeArrays).toBe(true);
      for (const wrong of ['"true"', "1", "{}"]) {
        expect(() => read(call(`,"${name}":${wrong}`))).toThrow("explodeArrays must be true or false.");
      }
    }
  });

  it("keeps payload and queryString as they were written", () => {
    const payload = '{ "id": 9007199254740993, "v":1.0,"2":0,"1":0, "com.example.Share": {"__proto__":1,"a":1,"a":2} }';
    const read1 = read(call(`, "payload" : ${payload} ,"query_string":{"x":1e400}`));
    expect(text(read1.payload)).toBe(payload);
    expect(text(read1.queryString)).toBe('{"x":1e400}');
  });

  it("takes numbers and booleans in headers as text, in the order written", () => {
    expect(read(call(',"headers":{"B":1.50,"A":true,"10":"x"}')).headers).toEqual([
      ["B", "1.50"],
      ["A", "true"],
      ["10", "x"],
    ]);
  });

  it("reads body bytes from base64 and base64url, and text behind a byte order mark", () => {
    expect(read(call(',"body":"-_8="')).body).toEqual(Buffer.from([0xfb, 0xff]));
    expect(read(`\ufeff${call("")}`).url).toBe("https://a/");
  });
});

describe("descriptionFromDotted()", () => {
  it("builds the call from dotted names and never splits a key further", () => {
    const description = readDotted([
      ["url", "https://a/"],
      ["method", "POST"],
      ["headers.x-pinc-response-data-at", "rows.0.data"],
      ["payload.com.example.ugc.ShareContent", "x"],
      ["queryString.a", "1"],
    ]);
    expect(description).toMatchObject({
      url: "https://a/",
      method: "POST",
      headers: [["x-pinc-response-data-at", "rows.0.data"]],
    });
    expect(text(description.payload)).toBe('{"com.example.ugc.ShareContent":"x"}');
    expect(text(description.queryString)).toBe('{"a":"1"}');
  });

  it("takes a payload that is JSON text as it is", () => {
    expect(
      text(
        readDotted([
          ["url", "u"],
          ["method", "POST"],
          ["payload", '{"n":1.0}'],
        ]).payload,
      ),
    ).toBe('{"n":1.0}');
  });

  it.each([
    [
      [
        ["url", "a"],
        ["url", "b"],
        ["method", "GET"],
      ],
      "url",
    ],
    [
      [
        ["url", "a"],
        ["method", "GET"],
        ["nope", "1"],
      ],
      "nope",
    ],
    [[["method", "GET"]], "url"],
  ] as const)("refuses %j", (dotted, field) => {
    expect(() => readDotted(dotted as never)).toThrow(
      expect.objectContaining({ message: expect.stringContaining(field) }),
    );
  });
});
