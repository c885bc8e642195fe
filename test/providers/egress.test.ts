import { readFileSync } from "node:fs";
import { describe, expect, it } from "vitest";
import { decideEgress } from "../../src/providers/egress.js";
import type { Provider } from "../../src/providers/provider.js";
import { providerFrom } from "./provider-for-test.js";

interface CorpusRow {
  readonly id: string;
  readonly url: string;
  readonly expect: "accept" | "reject";
}

const corpusFile = new URL("../corpus/urls.jsonl", import.meta.url);
const corpus = readFileSync(corpusFile, "utf8")
  .split("\n")
  .filter(Boolean)
  .map((line) => JSON.parse(line) as CorpusRow);

const github = providerFrom({ name: "github", apiOrigins: ["https://api.github.com", "https://uploads.github.com"] });
const G = "https://api.github.com";

function ruleOf(url: string, provider: Provider = github): string {
  const decision = decideEgress(url, provider);
  return decision.result === "allow" ? "allow" : decision.rule;
}

describe("decideEgress() on the url corpus", () => {
  it("holds every row", () => {
    expect(corpus.length).toBeGreaterThanOrEqual(89);
  });

  it.each(corpus)("$id: $expect", ({ url, expect: expected }) => {
    const decision = decideEgress(url, github);
    expect(decision.result).toBe(expected === "accept" ? "allow" : "deny");
    if (decision.result === "allow") expect(decision.origin).toBe(G);
    else expect(decision.message).not.toContain("evil");
  });
});

/** threats 2A; what the corpus has is not repeated unless the reason matters. */
const refused: ReadonlyArray<readonly [row: string, url: string, rule: string]> = [
  ["U01", `${G}@evil.test/`, "userinfo"],
  ["U02", `${G}:443@evil.test/`, "userinfo"],
  ["U03", `${G}&@evil.test/`, "userinfo"],
  ["U04", `${G}\uff03@evil.test/`, "userinfo"],
  ["U05", "https://user:pass@api.github.com/", "userinfo"],
  ["U06", "https://:@api.github.com/", "userinfo"],
  ["U06", "https://@api.github.com/", "userinfo"],
  ["U07", "https://evil.test\\@api.github.com/", "backslash"],
  ["U09", `${G}\\@evil.test/`, "backslash"],
  ["U09", `${G}/x\\y`, "backslash"],
  ["U10", "https:\\\\api.github.com/x", "backslash"],
  ["U10", "https:/api.github.com/x", "not_absolute"],
  ["U10", "https:api.github.com/x", "not_absolute"],
  ["U10", "https:///api.github.com/x", "not_absolute"],
  ["U11", "https:////evil.test//x", "not_absolute"],
  ["U12", "//evil.test/x", "not_absolute"],
  ["U12", "/x", "not_absolute"],
  ["U12", "", "not_absolute"],
  ["U12", "x", "not_absolute"],
  ["U12", "https://", "not_absolute"],
  ["U12", "https://?x", "not_absolute"],
  ["U13", `${G}./`, "origin_not_listed"],
  ["U14", "https://api.github.com../", "origin_not_listed"],
  ["U14", "https://api..github.com/", "origin_not_listed"],
  ["U14", "https://.api.github.com/", "origin_not_listed"],
  ["U16", `${G}:80/`, "origin_not_listed"],
  ["U16", `${G}:8443/`, "origin_not_listed"],
  ["U16", `${G}:0/`, "port"],
  ["U17", `${G}:0443/`, "port"],
  ["U17", `${G}:/`, "port"],
  ["U17", `${G}:`, "port"],
  ["U18", `${G}:65536/`, "port"],
  ["U18", `${G}:99999/`, "port"],
  ["U18", `${G}:443:443/`, "port"],
  ["U18", `${G}:\uff18\uff10/`, "non_ascii_host"],
  ["U18", "https://[::1]:80:80/", "host"],
  ["U19", "http://api.github.com/", "scheme"],
  ["U19", "http://api.github.com:443/", "scheme"],
  ["U21", "ftp://api.github.com/", "scheme"],
  ["U21", "gopher://127.0.0.1:6379/_x", "scheme"],
  ["U21", "blob:https://api.github.com/u", "scheme"],
  ["U21", "wss://api.github.com/", "scheme"],
  ["U21", "view-source:https://api.github.com/", "scheme"],
  ["U21", "api.github.com:443/x", "scheme"],
  ["U23", "https://api.githuB\u212a.com/", "non_ascii_host"],
  ["U23", "HTTP\u017f://api.github.com/", "not_absolute"],
  ["U24", "https://api.g\u0131thub.com/", "non_ascii_host"],
  ["U25", `${G}\u3002evil.test/`, "non_ascii_host"],
  ["U26", `${G}\t.evil.test/`, "control"],
  ["U27", "ht\ntps://api.github.com/", "control"],
  ["U27", ` ${G}/`, "space"],
  ["U27", `${G}/ `, "space"],
  ["U27", `\u0000${G}/`, "control"],
  ["U28", `${G}%00.evil.test/`, "host"],
  ["U28", `${G}%40evil.test/`, "host"],
  ["U28", `${G}\uff20evil.test/`, "non_ascii_host"],
  ["U28", `${G}/\ud800`, "surrogate"],
  ["U28", `${G}/?a=\udc00b`, "surrogate"],
  ["U29", `${G}.evil.test/`, "origin_not_listed"],
  ["U29", "https://xapi.github.com/", "origin_not_listed"],
  ["U29", "https://github.com/", "origin_not_listed"],
  ["U30", "https://evil.test#.api.github.com/", "origin_not_listed"],
  ["U30", "https://evil.test?.api.github.com/", "origin_not_listed"],
  ["U32", `${G}/\r\nX-Injected: 1`, "control"],
  ["U32", `${G}/?a=\r\nX-Injected: 1`, "control"],
  ["U32", `${G}/#\n`, "control"],
  ["U34", `${G}/\\..\\admin`, "backslash"],
  ["U37", `${G}/${"a".repeat(9_000)}`, "too_long"],
  ["U37", `${G}/${"a".repeat(1_000_000)}`, "too_long"],
  ["U37", `${G}/#${"a".repeat(9_000)}`, "too_long"],
  ["U37", `${G}/${"../".repeat(3_000)}`, "too_long"],
  ["U37", `https://${"a".repeat(64)}.github.com/`, "origin_not_listed"],
  ["U41", "https://slack.com/api/users.list", "origin_not_listed"],
  ["space", "https://api.github.com /", "host"],
  ["control", `${G}/\u0085`, "control"],
  ["control", `${G}/\u007f`, "control"],
];

/** N01-N05, N07, N11: hosts that parsers turn into addresses. */
const addresses = [
  "127.1",
  "0x7f000001",
  "2130706433",
  "017700000001",
  "0177.0.0.1",
  "0x7f.1",
  "127.0.0.1.",
  "127.0.0.1",
  "\u2460\u2461\u2466.\u24ea.\u24ea.\u2460",
  "\uff11\uff12\uff17.\uff10.\uff10.\uff11",
  "127\u30020\u30020\u30021",
  "127%2e0%2e0%2e1",
  "loc\u200balhost",
  "loc\u00adalhost",
  "%6c%6f%63%61%6c%68%6f%73%74",
  "localhost",
  "0",
  "0.0.0.0",
  "[::]",
  "[::1]",
  "[::ffff:127.0.0.1]",
  "[::127.0.0.1]",
  "[fe80::1%25eth0]",
  "[v1.fe80::a]",
  "256.0.0.1",
  "1.1.1.1.1",
];

describe("decideEgress() refusals", () => {
  it.each(refused)("%s %j: %s", (_row, url, rule) => {
    expect(ruleOf(url)).toBe(rule);
  });

  const selfHosted = providerFrom({ apiOrigins: ["https://{host}", "https://{host}:8443"] });

  it.each(addresses)("refuses the address %j, also where a template takes any host", (host) => {
    for (const scheme of ["http", "https"]) {
      expect(ruleOf(`${scheme}://${host}/`)).not.toBe("allow");
      expect(ruleOf(`${scheme}://${host}/`, selfHosted)).not.toBe("allow");
      expect(ruleOf(`${scheme}://${host}:8443/`, selfHosted)).not.toBe("allow");
    }
  });

  it("keeps every message free of the url and ends it with a full stop", () => {
    for (const [, url] of refused) {
      const decision = decideEgress(url.replaceAll("evil", "CANARYhost"), github);
      if (decision.result !== "deny") throw new Error("allowed");
      expect(decision.message).toMatch(/^The (url|host|port)[^\n]{10,300}\.$/);
      expect(decision.message).not.toContain("CANARYhost");
    }
  });

  it("names the listed origins, but not those of a private network", () => {
    const message = (provider: Provider) => {
      const decision = decideEgress("https://other.test/", provider);
      return decision.result === "deny" ? decision.message : "";
    };
    expect(message(github)).toContain("https://uploads.github.com");
    const hidden = providerFrom({ allowPrivateNetwork: true, apiOrigins: ["https://git.corp.internal"] });
    expect(message(hidden)).not.toContain("corp");
  });
});

describe("decideEgress() origins", () => {
  it.each([
    ["https://API.GITHUB.COM/x", "/x"],
    ["HTTPS://api.github.com/x", "/x"],
    ["https://api.github.com:443/x", "/x"],
    ["https://api.github.com", "/"],
    ["https://api.github.com?a=1", "/?a=1"],
    ["https://api.github.com#x", "/"],
    ["https://api.github.com/@me", "/@me"],
    ["https://api.github.com/?q=user@example.com", "/?q=user@example.com"],
    ["https://api.github.com/?q=a\\b", "/?q=a\\b"],
  ])("folds %s", (url, path) => {
    expect(decideEgress(url, github)).toEqual({ result: "allow", rule: G, origin: G, path, parameters: undefined });
  });

  it("allows http only on a listed loopback origin and port", () => {
    const local = providerFrom({ apiOrigins: ["http://127.0.0.1:8090", "http://localhost"] }, true);
    expect(ruleOf("http://127.0.0.1:8090/x", local)).toBe("allow");
    expect(ruleOf("http://localhost:80/x", local)).toBe("allow");
    expect(ruleOf("http://127.0.0.1:8091/x", local)).toBe("origin_not_listed");
    expect(ruleOf("https://127.0.0.1:8090/x", local)).toBe("origin_not_listed");
    expect(ruleOf("http://127.1:8090/x", local)).toBe("origin_not_listed");
    expect(ruleOf("http://2130706433:8090/x", local)).toBe("origin_not_listed");
  });

  it("refuses where parser and text disagree, even for a list that has the odd spelling", () => {
    for (const host of ["127.1", "0x7f.1", "2130706433", "xn--", "a.xn--", "127.0.0.1."]) {
      const odd: Provider = { ...github, exactOrigins: new Set([`https://${host}`]) };
      expect(ruleOf(`https://${host}/`, odd)).toBe("parser_disagreement");
    }
  });

  it("keeps a listed port apart from others", () => {
    const ported = providerFrom({ apiOrigins: ["https://api.example.com:8443"] });
    expect(ruleOf("https://api.example.com:8443/", ported)).toBe("allow");
    expect(ruleOf("https://api.example.com/", ported)).toBe("origin_not_listed");
    expect(ruleOf("https://api.example.com:443/", ported)).toBe("origin_not_listed");
  });
});
