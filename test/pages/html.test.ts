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
const WITH_SHOP = { ...provider({ apiOrigins: ["https://{shop}.shop.example"] }), displayName: MARKUP };

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
            application: { name: MARKUP, accentColor: MARKUP, icon: Buffer.from(MARKUP) },
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
          application: { name: MARKUP, accentColor: MARKUP, icon: Buffer.from(MARKUP) },
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
});
