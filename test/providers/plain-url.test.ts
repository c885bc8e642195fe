import { describe, expect, it } from "vitest";
import { decideEgress, parsePlainUrl } from "../../src/providers/egress.js";
import { providerFrom } from "./provider-for-test.js";

const ORIGINS = ["https://api.example.com", "https://api.example.com:8443", "http://127.0.0.1:8000"];
const origins = new Set(ORIGINS);
const provider = providerFrom({ name: "plain", apiOrigins: ORIGINS }, true);
const [ORIGIN] = ORIGINS;

/** The same url in a spelling that is judged by text and parser. */
function judged(url: string) {
  return decideEgress(url.replace(/^http/, "HTTP"), provider);
}

describe("parsePlainUrl()", () => {
  it.each(["/", "/v1/me", "/a//b/", "/x?", "/x?a=1&b=%20%zz/?", "/user:1@x,y;z=(*)!$&+~-_", "/a.b/c..d."])(
    "takes %s as the URL standard does",
    (path) => {
      for (const origin of ORIGINS) {
        expect(parsePlainUrl(origin + path, origins)).toEqual({ origin, path });
        expect(decideEgress(origin + path, provider)).toEqual(judged(origin + path));
      }
    },
  );

  it.each([
    "",
    "?a=1",
    "#f",
    "/x#f",
    "/.",
    "/..",
    "/../x",
    "/x/./y",
    "/x/..",
    "/.hidden",
    "/%2e%2e/x",
    "/a%20b",
    "/a b",
    "/a\\b",
    "/a'b",
    "/x?a='",
    '/x?a="',
    "/x?<>",
    "/x?a b",
    "/é",
    "/x?é",
    "/{a}",
    "/a|b",
    "/x?a|b",
    "/a\n",
    "/a\tb",
    "/x?\n",
    "/[a]",
    "/a^b",
    "/a`b",
  ])("leaves %j to text and parser", (path) => {
    expect(parsePlainUrl(`${ORIGIN}${path}`, origins)).toBeUndefined();
  });

  it.each([
    "https://api.example.com.evil.test/x",
    "https://api.example.com@evil.test/x",
    "https://api.example.com:443/x",
    "https://api.example.com:84430/x",
    "https://API.example.com/x",
    "HTTPS://api.example.com/x",
    "https:/api.example.com/x",
    "https:///api.example.com/x",
    "http://api.example.com/x",
    "//api.example.com/x",
    " https://api.example.com/x",
    "https://api.example.com\\/x",
    "/x",
    "",
    `${ORIGIN}/${"x".repeat(8192)}`,
  ])("takes no other origin: %s", (url) => {
    expect(parsePlainUrl(url, origins)).toBeUndefined();
  });

  it("never says otherwise than text and parser do", () => {
    const alphabet = [..."/../??aZ09_~!$&()*+,;=:@-%2e.. '\"<>#{}|\\^`[]é\t\n"];
    let plain = 0;
    for (let run = 0; run < 20_000; run++) {
      const rest = Array.from({ length: run % 12 }, () => alphabet[Math.floor(Math.random() * alphabet.length)]).join(
        "",
      );
      const url = `${ORIGIN}/${rest}`;
      const parsed = parsePlainUrl(url, origins);
      if (parsed === undefined) continue;
      plain++;
      expect(decideEgress(url, provider), url).toEqual(judged(url));
      const { pathname, search } = new URL(url);
      // A lone `?` stays as written.
      expect(parsed.path.replace(/^([^?]*)\?$/, "$1"), url).toBe(pathname + search);
    }
    expect(plain).toBeGreaterThan(1000);
  });
});
