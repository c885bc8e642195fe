import { describe, expect, it } from "vitest";
import { maskField, maskText } from "../../src/records/mask-text.js";
import { isSensitiveField, isSensitiveName } from "../../src/records/sensitive-name.js";

const M = '"[masked]"';

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
    ["JSON in a string cut off", '{"p":"{\\"access_token\\":\\"CANARY', '{"p":"{\\"access_token\\":\\"[masked]\\"'],
    ["lines", '{"token":"CANARY"}\n{"token":"CANARY"}', `{"token":${M}}\n{"token":${M}}`],
    ["events", 'data: {"id_token":"CANARY"}\n\n', `data: {"id_token":${M}}\n\n`],
    ["a scheme in a text", '{"note":"use Bearer CANARY-1234"}', '{"note":"use Bearer [masked]"}'],
  ])("masks %s", (_, text, masked) => {
    expect(maskText(text)).toBe(masked);
    expect(maskText(text)).not.toContain("CANARY");
  });

  it.each(['{"max_tokens":100,"token":null}', '{"author":{"name":"x"}}', "[]", "", "plain text", '"', '{"a":"b\\"c"}'])(
    "leaves %s as it is",
    (text) => expect(maskText(text)).toBe(text),
  );

  it("masks a string that goes deeper than it looks", () => {
    let text = '{"token":"CANARY"}';
    let harmless = '{"n":1}';
    for (let depth = 0; depth < 6; depth += 1) {
      text = JSON.stringify({ p: text });
      harmless = JSON.stringify({ p: harmless });
    }
    expect(maskText(text)).not.toContain("CANARY");
    // Each level costs a pass over all of it.
    expect(maskText(harmless)).toContain("[masked]");
  });
});

describe("maskText() of other types", () => {
  it("masks parameters of a form", () => {
    const text = "grant_type=x&client_secret=CANARY&client%5Fsecret=CANARY&key=CANARY&a=b&%=c";
    expect(maskText(text)).toBe("grant_type=x&client_secret=[masked]&client%5Fsecret=[masked]&key=[masked]&a=b&%=c");
  });

  it("masks parts", () => {
    const part = (name: string, value: string) =>
      `--b\r\nContent-Disposition: form-data; name="${name}"\r\nX: y\r\n\r\n${value}\r\n`;
    const text = `${part("a", "1")}${part("password", "CANARY\r\nCANARY")}${part("b", "2")}--b--`;
    const masked = maskText(text);
    expect(masked).toBe(`${part("a", "1")}${part("password", "[masked]")}${part("b", "2")}--b--`);
  });

  it("masks elements and attributes", () => {
    const text = '<?xml version="1.0"?><a x="1" apiKey="CANARY"><ns:password t="x">CANARY</ns:password><b>2</b></a>';
    expect(maskText(text)).toBe(
      '<?xml version="1.0"?><a x="1" apiKey="[masked]"><ns:password t="x">[masked]</ns:password><b>2</b></a>',
    );
  });

  it.each([
    [
      "a form in a string of JSON",
      '{"note":"a=1&access_token=CANARY&b=2"}',
      '{"note":"a=1&access_token=[masked]&b=2"}',
    ],
    ["a url in a string of JSON", '{"url":"https://x/y?token=CANARY"}', '{"url":"https://x/y?token=[masked]"}'],
    ["a fragment", "https://x/#access_token=CANARY&n=1", "https://x/#access_token=[masked]&n=1"],
    ["a user in a url", '{"url":"https://ada:CANARY@x/y"}', '{"url":"https://[masked]@x/y"}'],
    ["a form in a form", "state=a%3D1%26token%3DCANARY&b=2", `state=${encodeURIComponent("a=1&token=[masked]")}&b=2`],
    [
      "JSON in a form",
      `user=${encodeURIComponent('{"password":"CANARY","n":1}')}&b=2`,
      `user=${encodeURIComponent(`{"password":${M},"n":1}`)}&b=2`,
    ],
    ["JSON encoded twice", encodeURIComponent(encodeURIComponent('{"pin":"CANARY"}')), undefined],
    ["JSON in a string of \\u0022", '{"p":"{\\u0022password\\u0022:\\u0022CANARY\\u0022}"}', undefined],
    ["an escape that is none in a name", "pass%77ord%zz=CANARY&a=b", "pass%77ord%zz=[masked]&a=b"],
    ["JSON behind markup", `<a/>{"access_token":"CANARY"}`, `<a/>{"access_token":${M}}`],
    ["JSON behind a lone quotation mark", `6" x {"access_token":"CANARY"}`, `6" x {"access_token":${M}}`],
    ["JSON in markup", `<script>var a = {"access_token":"CANARY"}</script>`, undefined],
    ["JSON in an attribute", "<div data-a='{&quot;csrf_token&quot;:&quot;CANARY&quot;}'>", undefined],
    ["markup in markup", "<a>&lt;password&gt;CANARY&lt;/password&gt;</a>", undefined],
    [
      "CDATA",
      "<access_token><![CDATA[CANARY]]></access_token><b>2</b>",
      "<access_token>[masked]</access_token><b>2</b>",
    ],
    ["an element in an element", "<password><value>CANARY</value></password><b/>", "<password>[masked]</password><b/>"],
    ["an element in one of its name", "<token><token>a</token>CANARY</token><b/>", "<token>[masked]</token><b/>"],
    ["a comment in an element", "<password><!-- > -->CANARY</password><b/>", "<password>[masked]</password><b/>"],
    ["an element cut off", "<b>2</b><password>CANARY", "<b>2</b><password>[masked]"],
    ["an element that an attribute names", '<string name="api_key">CANARY</string><b/>', undefined],
    ["an element that another one names", "<name>password</name><value><string>CANARY</string></value><b/>", undefined],
    ["a value beside its name", '<input name="password" type="text" value="CANARY"><b>', undefined],
    ["a value in front of its name", '<input value="CANARY" name="csrf_token"><b>', undefined],
    [
      "a member beside its name",
      `{"name":"password","value":"CANARY","b":2}`,
      `{"name":"password","value":${M},"b":2}`,
    ],
    [
      "a member in front of its name",
      `[{"value":"CANARY","key":"pin"},{"a":1}]`,
      `[{"value":${M},"key":"pin"},{"a":1}]`,
    ],
    [
      "objects in front of its name",
      `{"value":{"a":{"b":"CANARY"}},"key":"pin","b":1}`,
      `{"value":${M},"key":"pin","b":1}`,
    ],
    [
      "strings in single quotation marks",
      `{'a':'b','password':'CANARY','c':1}`,
      `{'a':'b','password':'[masked]','c':1}`,
    ],
    ["names without quotation marks", `{a:"b",password:"CANARY",c:1}`, `{a:"b",password:${M},c:1}`],
    ["a parameter of a field", "a=b;password=CANARY", "a=b;password=[masked]"],
    ["a field in a text", "Host: x\r\nX-Api-Key: CA NARY\r\nA: b", "Host: x\r\nX-Api-Key: [masked]\r\nA: b"],
    ["brackets in a parameter", "a=1&pin=[CA]NARY&b=2", "a=1&pin=[masked]&b=2"],
    ["quotation marks in a parameter", "a=1&pin='CA'NARY&b=2", "a=1&pin='[masked]'&b=2"],
    ["an object in a script", 'token = {a: "CANARY",\n b: "CANARY"};\nc', "token = [masked];\nc"],
    ["two words", "Your API key: CANARY", "Your API key: [masked]"],
    ["a setting", '[db]\npassword = CA,"N;ARY\nuser=x', "[db]\npassword = [masked]\nuser=x"],
    ["YAML", "a: 1\npassword: 'CA''NARY'\nb: 2", "a: 1\npassword: '[masked]'\nb: 2"],
    ["a block of YAML", "keys:\n  secret: |\n    CANARY\n\n    CANARY\n  b: 2", "keys:\n  secret: [masked]\n  b: 2"],
    ["a list of YAML", "tokens:\n- CANARY\n- CANARY\nb: 2", "tokens:[masked]\nb: 2"],
    [
      "a variable of YAML",
      "- name: API_TOKEN\n  value: CANARY\n- name: A",
      "- name: API_TOKEN\n  value: [masked]\n- name: A",
    ],
    ["an escaped string", `'{\\"password\\":\\"CANARY\\"}'`, undefined],
    ["a hash of Ruby", `{"password"=>"CANARY", :a=>1}`, `{"password"=>${M}, :a=>1}`],
  ])("masks %s", (_, text, masked) => {
    if (masked !== undefined) expect(maskText(text)).toBe(masked);
    expect(maskText(text)).not.toMatch(/CA|NARY/);
    expect(maskText(text)).toContain("masked");
  });

  it.each([
    ["the name of the part without quotation marks", "name=password"],
    ["the name of the part in single ones", "name='password'"],
    ["a further parameter", 'name="password"; filename="a.txt"'],
  ])("masks parts with %s, and with every end of line", (_, parameter) => {
    for (const end of ["\r\n", "\n"]) {
      const head = `--b${end}Content-Type: text/plain${end}Content-Disposition: form-data; ${parameter}${end}${end}`;
      const text = (value: string) => `--b${end}X: y${end}${end}1${end}${head}${value}${end}--b--`;
      expect(maskText(text(`CANARY${end}--CANARY`))).toBe(text("[masked]"));
    }
  });

  it.each([
    ["JSON in a part", `--b\r\nContent-Type: application/json\r\n\r\n{"password":"CANARY"}\r\n--b--`],
    [
      "HTTP in a part",
      `--b\r\nContent-Type: application/http\r\n\r\nHTTP/1.1 200 OK\r\nX-Token: CANARY\r\n\r\n{"pin":"CANARY"}\r\n--b--`,
    ],
    ["the last part, cut off", `--b\r\nContent-Disposition: form-data; name="password"\r\n\r\nCANARY`],
  ])("masks %s", (_, text) => expect(maskText(text)).not.toContain("CANARY"));

  it.each([
    "<p>Use of <b>bold</b> text: 5 > 4 &amp; more</p>",
    "a=1&b=%7B%22c%22%3A1%7D&d=e%20f",
    '{"url":"https://x/y?a=b#c","html":"<a href=\\"x\\">y &amp; z</a>","time":"10:00:01","data":"YWJj=="}',
    "name: Ada\nvalue: 1\nmax_tokens: 100\ntoken: null\n",
    '--b\r\nContent-Disposition: form-data; name="a"\r\n\r\n1\r\n--b--',
  ])("leaves %s as it is", (text) => expect(maskText(text)).toBe(text));

  it("comes to an end with texts that would take others back again and again", () => {
    const units = `a|a.|"|'|\\\\|"\\\\|{"token":|name=|name={|name="pin" |name="a"\r\n|<a |<token>|<a name="pin">|<name>pin</name><b>|bearer |=|:|&|[|{"value":|%41|%25|%2525|&quot;|&#38;|'=|{"value":{|//|token: |\n`;
    for (const unit of units.split("|")) {
      const text = unit.repeat(16_384 / unit.length);
      for (const each of [text, JSON.stringify(text)]) maskText(each);
    }
  });
});

describe("maskField()", () => {
  it.each([
    ["Cookie", "CANARY", "[masked]"],
    ["X-Note", "Basic Q0FOQVJZ", "Basic [masked]"],
    ["Location", "https://x/?access_token=CANARY&b=1", "https://x/?access_token=[masked]&b=1"],
    ["Location", "/cb#access_token=CANARY", "/cb#access_token=[masked]"],
    ["Link", '<https://x/?token=CANARY>; rel="next"', '<https://x/?token=[masked]>; rel="next"'],
    ["accept", "*/*", "*/*"],
    ["content-type", "multipart/form-data; boundary=abc", "multipart/form-data; boundary=abc"],
  ])("masks %s: %s", (name, value, masked) => expect(maskField(name, value)).toBe(masked));
});
