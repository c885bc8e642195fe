import { describe, expect, it } from "vitest";
import { documentFrom, messagePage } from "../../src/pages/document.js";
import { html } from "../../src/pages/html.js";
import { textsFor } from "../../src/pages/texts/language.js";
import { confirmPage, forwardPage, valuesPage } from "../../src/pages/values-page.js";
import { providerFrom as provider } from "../providers/provider-for-test.js";

const MARKUP = `</title></style><script>alert(1)</script><img src="x" onerror='y'>&lt;`;
const ESCAPED =
  "&lt;/title&gt;&lt;/style&gt;&lt;script&gt;alert(1)&lt;/script&gt;&lt;img src=&quot;x&quot; onerror=&#39;y&#39;&gt;&amp;lt;";

describe("html``", () => {
  it("escapes text for content and for quoted attributes", () => {
    expect(html`<p title="${MARKUP}">${MARKUP}</p>`.text).toBe(`<p title="${ESCAPED}">${ESCAPED}</p>`);
  });

  it("takes markup, and lists of it, as they are; undefined and false leave nothing", () => {
    expect(html`${html`<b>`}${[html`<i>`, html`${"<u>"}`]}${undefined}${false}`.text).toBe("<b><i>&lt;u&gt;");
  });

  it("never looks again at what it has put in", () => {
    expect(html`${"$1"}${"$&"}${"&amp;"}`.text).toBe("$1$&amp;&amp;amp;");
  });
});

const texts = textsFor("");
const { oauth2 = expect.fail(), ...SHOP } = provider({ apiOrigins: ["https://{shop}.shop.example"], oauth2: {} });
const WITH_SHOP = {
  ...{ ...SHOP, displayName: MARKUP },
  oauth2: { ...oauth2, scopeDescriptions: { [MARKUP]: MARKUP, read: "Read it", toString: "Print it" } },
};

describe("a page", () => {
  it.each([
    ["of a message", messagePage({ title: MARKUP, advice: MARKUP, detail: MARKUP })],
    ["that goes on", forwardPage(MARKUP, `https://acme.shop.example/?x=${MARKUP}`, texts)],
    [
      "that says whose account it is",
      confirmPage(
        {
          ...{
            provider: WITH_SHOP,
            mark: { name: MARKUP, accentColor: MARKUP, icon: Buffer.from(MARKUP) },
            userId: MARKUP,
            session: MARKUP,
            texts,
          },
          given: new Map([["shop", MARKUP]]),
        },
        [MARKUP],
      ),
    ],
    [
      "that asks",
      valuesPage({
        ...{
          provider: WITH_SHOP,
          mark: { name: MARKUP, accentColor: MARKUP, icon: Buffer.from(MARKUP) },
          userId: MARKUP,
          texts,
        },
        question: {
          kind: "ask",
          values: WITH_SHOP.connectionValues.map((value) => ({ ...value, label: MARKUP, help: MARKUP })),
          problem: { parameter: "shop", problem: MARKUP },
        },
        given: new Map([["shop", MARKUP]]),
        session: MARKUP,
      }),
    ],
  ])("%s holds every value escaped", (_, page) => {
    const document = documentFrom(page, "en");
    expect(document).toContain(ESCAPED);
    expect(document.match(/<(script|img|\/title|\/style)\b/g)).toEqual(["</title", "</style"]);
  });

  it("says what a scope is in words where the definition has some, and names it in any case", () => {
    const mark = { name: "Notes", accentColor: "", icon: new Uint8Array(0) };
    const connecting = { provider: WITH_SHOP, mark, userId: "ada", session: "s", given: new Map(), texts };
    const { text } = confirmPage(connecting, ["read", "constructor", "a\u202eb", "toString"]).main;
    expect(text.match(/<li>.*?<\/li>/g)).toEqual([
      '<li><span lang="en">Read it</span> <code>read</code></li>',
      "<li><code>constructor</code></li>",
      "<li><code>a\ufffdb</code></li>",
      '<li><span lang="en">Print it</span> <code>toString</code></li>',
    ]);
  });
});
