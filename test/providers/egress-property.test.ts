import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { decideEgress } from "../../src/providers/egress.js";
import type { Provider } from "../../src/providers/provider.js";
import { providerFrom } from "./provider-for-test.js";

const RUNS = { seed: 20_26, numRuns: 2_000 };
const LISTED = ["https://api.github.com", "https://uploads.github.com", "https://api.github.com:8443"];
const provider = providerFrom({ apiOrigins: LISTED });

/** What must hold of every decision, whatever the url. */
function checkDecision(url: string, judged: Provider, isListed: (origin: string) => boolean): void {
  const decision = decideEgress(url, judged);
  if (decision.result === "deny") {
    expect(decision.message).toMatch(/^[\x20-\x7e]+$/);
    return;
  }
  expect(isListed(decision.origin)).toBe(true);
  expect(decision.path).toMatch(/^\/[\x21-\x7e]*$/);
  const sent = new URL(decision.origin + decision.path);
  const asked = new URL(url);
  expect(sent.origin).toBe(decision.origin);
  expect(asked.origin).toBe(decision.origin);
  expect(sent.username + sent.password + sent.hash).toBe("");
  expect(sent.pathname + sent.search).toBe(asked.pathname + asked.search);
  // Documented differences: `'` in a query and a lone `?` stay as written.
  const asStandard = decision.path
    .replace(/^([^?]*)\?$/, "$1")
    .replace(/\?.*/, (query) => query.replaceAll("'", "%27"));
  expect(asStandard).toBe(sent.pathname + sent.search);
}

/** Pieces that parsers are known to disagree about. */
const piece = fc.constantFrom(
  ..."@\\/:?#.;&%".split(""),
  "//",
  "..",
  "%2e",
  "%40",
  "%5c",
  "%00",
  "\t",
  "\n",
  "\r",
  " ",
  "\u0000",
  "\uff03",
  "\uff0f",
  "\u3002",
  "\u212a",
  "\ud800",
  "evil.test",
  "api.github.com",
  "https:",
  "[::1]",
  ":443",
  ":0443",
  "'",
  "{x}",
  "\u00e9",
);
const start = fc.constantFrom(
  "https://api.github.com",
  "https://api.github.com/a",
  "https://",
  "https:",
  "HTTPS://API.github.com?q=",
  "",
);
const hostile = fc.tuple(start, fc.array(piece, { maxLength: 8 })).map(([head, pieces]) => head + pieces.join(""));

/** One insertion, deletion or replacement in a good url. */
const mutated = fc
  .tuple(
    fc.constantFrom("https://api.github.com/a/b?c=d#e", "https://uploads.github.com:443/x"),
    fc.nat(40),
    piece,
    fc.nat(2),
  )
  .map(([url, at, text, cut]) => url.slice(0, at) + text + url.slice(at + cut));

describe("decideEgress() properties", () => {
  const isListed = (origin: string) => LISTED.includes(origin);

  it("allows only listed origins for any text", () => {
    fc.assert(
      fc.property(fc.string({ unit: "binary", maxLength: 60 }), (tail) => {
        checkDecision(`https://api.github.com${tail}`, provider, isListed);
        checkDecision(tail, provider, isListed);
      }),
      RUNS,
    );
  });

  it("allows only listed origins for hostile pieces", () => {
    fc.assert(
      fc.property(hostile, (url) => checkDecision(url, provider, isListed)),
      { ...RUNS, numRuns: 6_000 },
    );
  });

  it("allows only listed origins for mutations of a good url", () => {
    fc.assert(
      fc.property(mutated, (url) => checkDecision(url, provider, isListed)),
      { ...RUNS, numRuns: 6_000 },
    );
  });

  it("allows only hosts of the template, one label deep", () => {
    const template = providerFrom({ apiOrigins: ["https://{sub}.github.com"] });
    const inTemplate = (origin: string) => /^https:\/\/[a-z0-9-]+\.github\.com$/.test(origin);
    fc.assert(
      fc.property(fc.oneof(hostile, mutated), (url) => checkDecision(url, template, inTemplate)),
      { ...RUNS, numRuns: 6_000 },
    );
  });

  it("sends an ordinary path and query as written", () => {
    const segment = fc.string({ unit: fc.constantFrom(..."aZ09-_~!$&'()*+,;=:@%|".split("")), maxLength: 12 });
    fc.assert(
      fc.property(fc.array(segment, { maxLength: 5 }), fc.array(segment, { maxLength: 5 }), (path, query) => {
        const tail = `/${path.join("/")}?${query.join("&")}`;
        expect(decideEgress(`https://api.github.com${tail}`, provider)).toMatchObject({ result: "allow", path: tail });
      }),
      RUNS,
    );
  });
});
