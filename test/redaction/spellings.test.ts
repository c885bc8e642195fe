import { describe, expect, it } from "vitest";
import { createRedactor } from "../../src/redaction/redact.js";
import { spelledToken, viewsOf } from "../fuzz/token-spellings.js";

const TOKENS = [
  "gho_16C7e42F292c6912E7710c838347Ae178B4a",
  "ya29.a0/AfB_by+C~x-eQ==",
  "5f4dcc3b5aa765d61d8327deb882cf99",
  "u0041tnbf_41bc",
];

function unicode(text: string): string {
  return text.replace(/./gs, (one) => `\\u${one.charCodeAt(0).toString(16).padStart(4, "0")}`);
}

function percent(text: string): string {
  return text.replace(/./gs, (one) => `%${one.charCodeAt(0).toString(16)}`);
}

function raw(text: string): string {
  return text;
}

function json(text: string): string {
  return JSON.stringify(text).slice(1, -1);
}

function base64(text: string): string {
  return Buffer.from(text).toString("base64");
}

describe("createRedactor()", () => {
  it.each([
    ["one letter escaped in JSON", (token: string) => `\\u00${token.charCodeAt(0).toString(16)}${token.slice(1)}`],
    ["all letters escaped in JSON", unicode],
    [
      "all letters escaped in JSON, in upper case",
      (token: string) => unicode(token).toUpperCase().replaceAll("U", "u"),
    ],
    ["escaped in JSON that is text in JSON", (token: string) => JSON.stringify(unicode(token)).slice(1, -1)],
    ["all letters percent-encoded", percent],
    ["percent-encoded twice", (token: string) => percent(percent(token))],
    ["percent-encoded in JSON that escapes all", (token: string) => unicode(percent(token))],
    ["escaped in JSON that is percent-encoded", (token: string) => percent(unicode(token))],
    ["half of it one, half of it the other", (token: string) => unicode(token.slice(0, 9)) + percent(token.slice(9))],
    ["behind what could be the beginning of an escape", (token: string) => `%4\\u00${token}`],
  ])("takes out a token with %s", (_what, spell) => {
    const redactor = createRedactor([TOKENS[0] as string]);
    const text = `{"a":"b ${spell(TOKENS[0] as string)}"}`;
    expect(redactor.text(text)).toMatch(/^\{"a":"b (?:%4\\u00)?\[redacted\]"\}$/);
  });

  it.each([
    ["as a member's name", (token: string) => `{"${unicode(token)}":1}`, '{"[redacted]":1}'],
    ["in a form", (token: string) => `a=1&t=${percent(token)}&b=2`, "a=1&t=[redacted]&b=2"],
    ["with a sign of a form for a space", (token: string) => token.replaceAll(" ", "+"), "[redacted]"],
  ])("takes out a token %s", (_what, spell, expected) => {
    const token = "a secret of words";
    expect(createRedactor([token]).text(spell(token))).toBe(expected);
  });

  it.each([
    ["Java", { '"': "&quot;" }],
    ["Go", { '"': "&#34;", "'": "&#39;" }],
    ["Go's templates", { '"': "&#34;", "'": "&#39;", "+": "&#43;" }],
    ["Ruby", { '"': "&quot;", "'": "&#39;" }],
    ["PHP", { '"': "&quot;", "'": "&#039;" }],
    ["Python", { '"': "&quot;", "'": "&#x27;" }],
    ["Underscore", { '"': "&quot;", "'": "&#x27;", "`": "&#x60;" }],
    ["OWASP", { '"': "&quot;", "'": "&#x27;", "/": "&#x2F;" }],
    ["Handlebars", { '"': "&quot;", "'": "&#x27;", "`": "&#x60;", "=": "&#x3D;" }],
    ["Mustache", { '"': "&quot;", "'": "&#39;", "`": "&#x60;", "=": "&#x3D;", "/": "&#x2F;" }],
  ] satisfies [string, Record<string, string>][])("takes out a secret in HTML as %s escapes it", (_what, names) => {
    for (const secret of ["ya29.a0/AfB_by+C~x-eQ==", "abc&def/ghi+jkl==", `it's a "p<wd>" of \`mine\` + 1/2 = x`]) {
      const all: Readonly<Record<string, string>> = { "&": "&amp;", "<": "&lt;", ">": "&gt;", ...names };
      const written = secret.replace(/[^\w ]/g, (sign) => all[sign] ?? sign);
      const page = Buffer.from(`<p>The token ${written} is not valid</p>`);
      expect(createRedactor([secret]).bytes(page).toString()).toBe("<p>The token [redacted] is not valid</p>");
    }
  });

  it.each(["utf-16le", "utf-16be"])("takes out a token in %s that leaves as it came, wherever it is cut", (charset) => {
    for (const token of TOKENS) {
      const body = Buffer.from(`{"token":"${token}"}`, "utf16le");
      if (charset === "utf-16be") body.swap16();
      const redactor = createRedactor([token]);
      for (let cut = 0; cut <= body.length; cut++) {
        const stream = redactor.stream();
        const parts = [...stream.push(body.subarray(0, cut)), ...stream.push(body.subarray(cut)), ...stream.end()];
        const text = Buffer.concat(parts).toString("latin1").replaceAll("\0", "");
        expect(text).toBe('{"token":"[redacted]"}');
      }
    }
  });

  it.each(["\n", "\r\n", "\n    ", "\\n", "\\r\\n", "%0D%0A"])("takes out base64 that %j breaks", (end) => {
    const redactor = createRedactor([TOKENS[0] as string]);
    for (let lead = 0; lead < 80; lead++) {
      for (const encoding of ["base64", "base64url"] as const) {
        const lines = Buffer.from(`${"x".repeat(lead)}${TOKENS[0]}${"y".repeat(40)}`)
          .toString(encoding)
          .match(/.{1,76}/g);
        const text = redactor.text((lines ?? []).join(end));
        expect(text).toContain("[redacted]");
        // No more than the letters that also hold what is beside the token are left of it.
        const [before = ""] = text.split("[redacted]");
        expect(Buffer.from(before.replaceAll(end, ""), encoding).length).toBeLessThanOrEqual(lead + 1);
      }
    }
  });

  it.each([
    ["in JSON", (token: string) => JSON.stringify(token)],
    ["in JSON with its slashes escaped", (token: string) => JSON.stringify(token).replaceAll("/", "\\/")],
    ["percent-encoded", (token: string) => encodeURIComponent(token)],
    [
      "percent-encoded in lower case",
      (token: string) => encodeURIComponent(token).replaceAll(/%../g, (triplet) => triplet.toLowerCase()),
    ],
  ])("takes out base64 of a token that is written %s", (_what, write) => {
    const token = 'ya29.a0/AfB_by+C~x-"eQ/Zs0"==';
    expect(createRedactor([token]).text(`a ${base64(write(token))} b`)).toMatch(
      /^a [\w+/]{0,4}\[redacted\][\w+/]{0,4}={0,2} b$/,
    );
  });

  it("takes out a token behind the end of a line that ends no part of it", () => {
    expect(createRedactor([" 2JCbL6t4x"]).text("%%\n lsthat 2JCbL6\\u00744x")).toBe("%%\n lsthat[redacted]");
    expect(createRedactor(["rn4%5uu05511rr04100"]).text("%\n248\n  }\\rn4%5uu05511rr04100")).toBe(
      "%\n248\n  }\\[redacted]",
    );
  });

  it("takes out a token in short lines that end behind any of its letters", () => {
    const token = "ya29.a0.AfB.by.C~x.eQ.Zm.9v.Ym.Fy.Lm.Jh.eg";
    for (let width = 3; width < token.length; width++) {
      const lines = (token.match(new RegExp(`.{1,${width}}`, "g")) ?? []).join("\r\n");
      expect(createRedactor([token]).text(`a ${lines} b`)).toBe("a [redacted] b");
    }
  });

  it.each([
    ["a line break, escaped", "C0rrect\\nHorse\\r\\nBattery"],
    ["two line breaks, escaped", "abc\\n\\n   defghi"],
    ["many line breaks, escaped", "ab\\ncd\\nef\\ngh\\nij\\nkl"],
    ["a percent-encoded line break", "pass%0Aword12"],
    ["escapes that leave less than eight characters", "ab%12cd%20"],
  ])("takes out a secret with what looks like %s", (_what, secret) => {
    for (const spell of [raw, json, (text: string) => json(json(text)), encodeURIComponent, unicode, percent])
      expect(createRedactor([secret]).text(`{"a":"b ${spell(secret)}"}`)).toBe('{"a":"b [redacted]"}');
  });

  it("takes out a secret with what looks like a line break behind the beginning of another secret", () => {
    const redactor = createRedactor(["ab\\ncdefghijk", "QQab12345678901234"]);
    for (const spell of [raw, json, encodeURIComponent, unicode, percent]) {
      const text = `xx QQ${spell("ab\\ncdefghijk")} QQab\n12345678901234`;
      expect(redactor.text(text)).toBe("xx QQ[redacted] [redacted]");
      const stream = redactor.stream();
      const parts = [...text].flatMap((one) => [...stream.push(Buffer.from(one))]);
      expect(Buffer.concat([...parts, ...stream.end()]).toString()).toBe("xx QQ[redacted] [redacted]");
    }
  });

  it("takes out a secret that ends with a backslash, which may look like an escape of what follows", () => {
    const redactor = createRedactor(["Tr0ub4dor&3\\"]);
    expect(redactor.text('"Tr0ub4dor&3\\\\"')).toBe('"[redacted]"');
    expect(redactor.text("a=Tr0ub4dor%263%5C&n=1")).toBe("a=[redacted]&n=1");
  });

  it.each([
    ["password\\", ['{"password":"x","old_password":1}', "password%0A", "password%\\u0030a", "a=password"]],
    ["test\\\\\\\\", ["the latest test", '{"a":"test\\nx","b":"test\\\\"}', "test%5C&n"]],
    ["%74%65%73%74", ["the latest test", "t%65st"]],
    ["admin\\\\\\\\\\", ['{"admin":true}', '"admin\\n"']],
    ["abcde\\\\\\", ["abcde", "abcde\\\\", "abcde\\n\\n"]],
  ])("takes out %j where it is written whole, and leaves what remains of it once undone", (secret, ordinary) => {
    const redactor = createRedactor([secret]);
    for (const text of ordinary) expect(redactor.text(text)).toBe(text);
    for (const spell of [raw, json, (text: string) => json(json(text)), encodeURIComponent, unicode, percent]) {
      for (const [before, after] of [
        ["", ""],
        ["a=", "&n=1"],
        ['{"a":"', '"}'],
        ["la", "net"],
        ["", `u00${"\\u00".repeat(30)}`],
      ]) {
        const text = `${before}${spell(secret)}${after}`;
        const redacted = redactor.text(text);
        expect(redacted, text).toContain("[redacted]");
        for (let cut = 1; cut < text.length; cut++) {
          const stream = redactor.stream();
          const parts = [text.slice(0, cut), text.slice(cut)].flatMap((part) => [...stream.push(Buffer.from(part))]);
          expect(Buffer.concat([...parts, ...stream.end()]).toString()).toBe(redacted);
        }
      }
    }
  });

  it.each([
    ["\\\\server\\pass\\", "x=\\\\server\\pass\\ y"],
    ["\\/pa55word\\", "x=\\/pa55word\\ y"],
    ['\\"pa55word\\', 'x=\\"pa55word\\'],
    ["é6\\%5cr%5c%5c/s", `x=${json("é6\\%5cr%5c%5c/s")} y`],
  ])("takes out %j where an escape at its beginning can also be read literally: %s", (secret, text) => {
    expect(createRedactor([secret]).text(text)).toMatch(/^x=\[redacted\]\\*(?: y)?$/);
  });

  it.each(['"hunter2secret\\', "/hunter2secret\\"])("leaves JSON valid where it takes out %j", (secret) => {
    const text = JSON.stringify({ a: secret }).replaceAll("/", "\\/");
    expect(createRedactor([secret]).text(text)).toBe('{"a":"[redacted]"}');
  });

  it("leaves JSON valid where a backslash precedes a secret that begins with a slash", () => {
    const secret = "/a14u\\\\x0u";
    expect(createRedactor([secret]).text(JSON.stringify([`\\${secret}`]))).toBe('["\\\\[redacted]"]');
  });

  it("counts no letter of an escape as a backslash at the end of a secret", () => {
    const text = '{"a":"password\\n","b":"password\\t"}';
    expect(createRedactor(["password\\\\"]).text(text)).toBe(text);
  });

  it.each([
    [["%7a%61%62%63%64", "%61%62%63%64"], "z%61%62%63%64", "z[redacted]"],
    [["hunter22\\\\\\"], '"hunter22\\u00e9"', '"hunter22\\u00e9"'],
    [["abcdefgh%4"], "abcdefgh%41", "[redacted]1"],
    [['a"b%41cd'], '{"a":"a\\"b%41cd"}', '{"a":"[redacted]"}'],
    [['ab"%41cdefg'], JSON.stringify(JSON.stringify('ab"%41cdefg')), '"\\"[redacted]\\""'],
    [["p😀ssw😀rd"], "p\\uD83D\\uDE00ssw\\uD83D\\uDE00rd", "[redacted]"],
    [["u0041tnbf_41bc", "Atnbf-second"], "\\u0041tnbf%5f41bc", "\\[redacted]"],
    [["gho_16C7e42F"], "%25252567ho_16C7e42F", "[redacted]"],
    [['a"bcdefghijk'], "100%4a\\u0022bcdefghijk", "100%4[redacted]"],
    [['a<b"cdefgh'], '100%4a\\\\u003cb\\\\\\"cdefgh', "100%4[redacted]"],
    [["\nsecret of two\nlines"], "pzZ\nsecret of two\nlines", "pzZ[redacted]"],
    [["\r\nsecret-two"], "Kc2\n\r\nsecret-two", "Kc2\n[redacted]"],
    [[" 2JCbL6t4x"], "IDJ\n 2JCbL6t4x", "IDJ\n[redacted]"],
  ])("takes out each of %j that is written whole: %s", (secrets, text, expected) => {
    expect(createRedactor(secrets).text(text)).toBe(expected);
  });

  it("takes out a secret that what remains of a longer one ends with", () => {
    const redactor = createRedactor(["new-password\\", "password"]);
    expect(redactor.text("a new-password, new-password%5C")).toBe("a new-[redacted], [redacted]");
  });

  it.each([
    ["letters of one byte of latin1", "pässwörd-Größe"],
    ["letters of the basic plane", "пароль-密码-€"],
    ["letters beyond it", "p😀ssw😀rd-one"],
  ])("takes out a secret with %s, as text and as JSON in ASCII, in base64 as well", (_what, secret) => {
    const redactor = createRedactor([secret]);
    const ascii = (text: string) => json(text).replace(/[^\x20-\x7e]/g, unicode);
    for (const spell of [raw, ascii, (text: string) => json(ascii(text)), encodeURIComponent])
      expect(redactor.text(`{"a":"b ${spell(secret)}"}`)).toBe('{"a":"b [redacted]"}');
    for (const spell of [raw, ascii, encodeURIComponent])
      expect(redactor.text(base64(`a ${spell(secret)} b`))).toContain("[redacted]");
  });

  it("takes out base64 with escaped letters, and base64 of base64", () => {
    const redactor = createRedactor([TOKENS[0] as string]);
    expect(redactor.text(unicode(base64(`abc${TOKENS[0]}abc`)))).toContain("[redacted]");
    expect(redactor.text(percent(base64(`ab${TOKENS[0]}abc`)))).toContain("[redacted]");
    expect(redactor.text(base64(base64(`a${TOKENS[0]}abc`)))).toContain("[redacted]");
  });

  it("leaves what only resembles a token", () => {
    const redactor = createRedactor(TOKENS);
    for (const text of [
      `${TOKENS[0]?.slice(1)}`,
      `${TOKENS[0]?.slice(0, -1)}\\u0062`,
      `${TOKENS[0]?.slice(0, 20)}\n\n${TOKENS[0]?.slice(20)}`,
      "1234 5678",
      "[1,2,3,4,5,6,7,8]",
      "\\u0031\\u0032\\u4e2d\\u6587",
      "%",
      "\\",
      "%%%%%%%%%%%%%%%%%%%%%%%%%%%%%%%%",
      "\\\\\\\\\\\\\\\\\\\\\\\\\\\\\\\\\\\\\\\\\\\\\\\\\\\\\\\\\\\\\\",
    ]) {
      expect(redactor.text(text)).toBe(text);
      const stream = redactor.stream();
      expect(Buffer.concat([...stream.push(Buffer.from(text)), ...stream.end()]).toString()).toBe(text);
    }
  });

  it("leaves nothing that a reader could undo to a token, however it is spelled", () => {
    for (const token of TOKENS) {
      const redactor = createRedactor([token]);
      for (let seed = 0; seed < 500; seed++) {
        const { text, steps } = spelledToken(token, seed);
        const redacted = redactor.text(text);
        for (const view of viewsOf(redacted, steps)) {
          expect(view.includes(token), `${token}, seed ${seed}: ${JSON.stringify(text)} became ${redacted}`).toBe(
            false,
          );
        }
      }
    }
  });
});
