import { describe, expect, it } from "vitest";
import { isSensitiveField, isSensitiveName, maskField, maskParameters, maskText } from "../../src/records/mask-json.js";

const M = '"[masked]"';
const json = (text: string) => maskText(text, "application/json");

describe("isSensitiveName()", () => {
  it.each([
    "access_token",
    "refreshToken",
    "client-secret",
    "Password",
    "X-API-Key",
    "api.key",
    "JSESSIONID",
    "pwd",
    "client_assertion",
    "Proxy-Authorization",
    "set-cookie",
    "code_verifier",
    "sig",
    "x-hmac-sha256",
    "bearerValue",
  ])("knows %s", (name) => expect(isSensitiveName(name)).toBe(true));

  it.each(["author", "name", "design", "key", "passenger", "compass", "session_count", "id", ""])(
    "lets %s be seen",
    (name) => expect(isSensitiveName(name)).toBe(false),
  );

  it("knows key as a field or parameter", () => {
    expect([isSensitiveField("key"), isSensitiveField("x-goog-api-key"), isSensitiveField("keyword")]).toEqual([
      true,
      true,
      false,
    ]);
  });
});

describe("maskText() of JSON", () => {
  it.each([
    ["a member", '{"a":1,"password":"CANARY","b":2}', `{"a":1,"password":${M},"b":2}`],
    ["white space", '{"token" \n:\t"CANARY" }', `{"token" \n:\t${M} }`],
    ["a number", '{"pin": 1234, "n": 5}', `{"pin": ${M}, "n": 5}`],
    ["an escaped quote", '{"token":"CA\\"NARY","b":"x"}', `{"token":${M},"b":"x"}`],
    ["an escaped name", '{"acc\\u0065ss_token":"CANARY"}', `{"acc\\u0065ss_token":${M}}`],
    ["an array", '{"tokens":["CANARY",["]CANARY"]],"b":1}', `{"tokens":${M},"b":1}`],
    ["an object", '{"credentials":{"user":"CANARY","x":"}"},"b":[1]}', `{"credentials":${M},"b":[1]}`],
    ["nested members", '[{"a":{"secret":"CANARY"}}]', `[{"a":{"secret":${M}}}]`],
    ["a string that looks like a name", '["x",":",{"password":"CANARY"}]', `["x",":",{"password":${M}}]`],
    ["a value cut off", '{"a":1,"token":"CANARY', `{"a":1,"token":${M}`],
    ["a nested value cut off", '{"tokens":[{"x":"CANARY', `{"tokens":${M}`],
    ["a name cut off", '{"a":1,"tok', '{"a":1,"tok'],
    ["JSON in a string", '{"p":"{\\"access_token\\":\\"CANARY\\"}"}', `{"p":"{\\"access_token\\":\\"[masked]\\"}"}`],
    ["JSON in a string cut off", '{"p":"{\\"access_token\\":\\"CANARY', `{"p":${M}`],
    ["lines", '{"token":"CANARY"}\n{"token":"CANARY"}', `{"token":${M}}\n{"token":${M}}`],
    ["events", 'data: {"id_token":"CANARY"}\n\n', `data: {"id_token":${M}}\n\n`],
    ["a scheme in a text", '{"note":"use Bearer CANARY-1234"}', '{"note":"use Bearer [masked]"}'],
  ])("masks %s", (_, text, masked) => {
    expect(json(text)).toBe(masked);
    expect(json(text)).not.toContain("CANARY");
  });

  it.each(['{"max_tokens":100,"token":null}', '{"author":{"name":"x"}}', "[]", "", "plain text", '"', '{"a":"b\\"c"}'])(
    "leaves %s as it is",
    (text) => expect(json(text)).toBe(text),
  );

  it("masks a string that goes deeper than it looks", () => {
    let text = '{"token":"CANARY"}';
    for (let depth = 0; depth < 6; depth += 1) text = JSON.stringify({ p: text });
    expect(json(text)).not.toContain("CANARY");
  });
});

describe("maskText() of other types", () => {
  it("masks parameters of a form", () => {
    const text = "grant_type=x&client_secret=CANARY&client%5Fsecret=CANARY&key=CANARY&a=b&%=c";
    expect(maskText(text, "application/x-www-form-urlencoded")).toBe(
      "grant_type=x&client_secret=[masked]&client%5Fsecret=[masked]&key=[masked]&a=b&%=c",
    );
  });

  it("masks parts", () => {
    const part = (name: string, value: string) =>
      `--b\r\nContent-Disposition: form-data; name="${name}"\r\nX: y\r\n\r\n${value}\r\n`;
    const text = `${part("a", "1")}${part("password", "CANARY\r\nCANARY")}${part("b", "2")}--b--`;
    const masked = maskText(text, "multipart/form-data; boundary=b");
    expect(masked).toBe(`${part("a", "1")}${part("password", "[masked]")}${part("b", "2")}--b--`);
  });

  it("masks elements and attributes", () => {
    const text = '<?xml version="1.0"?><a x="1" apiKey="CANARY"><ns:password t="x">CANARY</ns:password><b>2</b></a>';
    expect(maskText(text, "text/xml")).toBe(
      '<?xml version="1.0"?><a x="1" apiKey="[masked]"><ns:password t="x">[masked]</ns:password><b>2</b></a>',
    );
  });

  it("comes to an end with texts that would take others back again and again", () => {
    for (const unit of ["a", "a.", '"', '"\\', '{"token":', "name=", 'name="a"\r\n', "<a ", "bearer ", "=", "&", "["]) {
      for (const type of ["application/json", "text/xml", "multipart/x", "application/x-www-form-urlencoded"]) {
        expect(maskText(unit.repeat(16_384 / unit.length), type).length).toBeGreaterThan(0);
        expect(maskText(`<${unit.repeat(16_384 / unit.length)}`, type).length).toBeGreaterThan(0);
      }
    }
  });
});

describe("maskField() and maskParameters()", () => {
  it("mask by name, and what stands behind a scheme", () => {
    expect([maskField("Cookie", "CANARY"), maskField("X-Note", "Basic Q0FOQVJZ")]).toEqual([
      "[masked]",
      "Basic [masked]",
    ]);
    expect(maskField("accept", "*/*")).toBe("*/*");
    expect(maskParameters("a=1&access_token=CANARY&b")).toBe("a=1&access_token=[masked]&b");
  });
});
