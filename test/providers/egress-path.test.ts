import { describe, expect, it } from "vitest";
import { decideEgress } from "../../src/providers/egress.js";
import { providerFrom } from "./provider-for-test.js";

const provider = providerFrom({});

function pathOf(tail: string): string {
  const decision = decideEgress(`https://api.example.com${tail}`, provider);
  return decision.result === "allow" ? decision.path : decision.rule;
}

describe("decideEgress() path", () => {
  it.each([
    "/",
    "//",
    "///a//b",
    "/a%2Fb",
    "/a%2fb",
    "/a%5Cb",
    "/a+b%20c",
    "/~'()*!$&,;=:@",
    "/a|b[c]",
    "/..;/admin",
    "/...",
    "/a.b/.c/..d",
    "/%",
    "/%zz%2",
    "/a%00b",
    "/v2/ugcPosts?q=authors&authors=List(urn%3Ali%3Aorganization%3A1)",
    "/?",
    "/?&&",
    "/?a=&b&=c&a=1&a=2",
    "/?a=b+c%20d",
    "/?q='it''s'",
    "/?q={a}",
    "/?q={{access_token}}",
    "/?q=a|b^c`d[e]\\f",
    "/?q=%&r=%zz",
    "/?q=../../x",
    "/?u=https://other.test/?x=1",
    "/?a=1?b=2",
  ])("sends %s as written", (tail) => {
    expect(pathOf(tail)).toBe(tail);
  });

  it.each([
    ["", "/"],
    ["?a=1", "/?a=1"],
    ["/a^b?c=^", "/a%5Eb?c=^"],
    ["/a/./b", "/a/b"],
    ["/a/../../admin", "/admin"],
    ["/%2e%2e/admin", "/admin"],
    ["/a/%2E/b/.%2e/c", "/a/c"],
    ["/a/..", "/"],
    ["/a/..//evil.test/x", "//evil.test/x"],
    ["/a b?c d", "/a%20b?c%20d"],
    ["/\u00e9?\u00e9=\u{1f600}", "/%C3%A9?%C3%A9=%F0%9F%98%80"],
    ["/a\u3000b", "/a%E3%80%80b"],
    ['/"<>`{}', "/%22%3C%3E%60%7B%7D"],
    ["/?\"<>\u00e9'", "/?%22%3C%3E%C3%A9'"],
    ["/a#b?c", "/a"],
    ["/a?b#c?d", "/a?b"],
    ["/a?#", "/a?"],
    ["/\ufeffa", "/%EF%BB%BFa"],
  ])("normalises %s", (tail, path) => {
    expect(pathOf(tail)).toBe(path);
  });

  it("keeps every ASCII character of a query but those the URL standard encodes", () => {
    for (let code = 0x20; code < 0x7f; code += 1) {
      const char = String.fromCharCode(code);
      const expected = ' "<>'.includes(char) ? encodeURIComponent(char) : char;
      expect(pathOf(`/p?x${char}y`)).toBe(char === "#" ? "/p?x" : `/p?x${expected}y`);
    }
  });

  it("refuses a path that grows too long for a request line", () => {
    expect(pathOf(`/${"\u00e9".repeat(4_000)}`)).toBe("too_long");
    expect(pathOf(`/?${"\u00e9".repeat(4_000)}`)).toBe("too_long");
    expect(pathOf(`/${"a".repeat(8_000)}`)).toBe(`/${"a".repeat(8_000)}`);
  });
});
