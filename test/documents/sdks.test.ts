import { readFileSync } from "node:fs";
import { expect, it } from "vitest";
import { DOCUMENT, REWRITE, sdksTable, withSdks } from "../support/sdks-table.js";

it("shows in docs/sdks.md the lines of code that npm run sdks runs", () => {
  const document = readFileSync(DOCUMENT, "utf8");
  expect(document.match(/^\| \[/gm)?.length).toBeGreaterThanOrEqual(14);
  expect(document, `out of date: ${REWRITE}`).toBe(withSdks(document));
});

it.each([
  [
    'async (account) =>\n    new Some({\n      token: await account.token(),\n      hosts: [\n        account.via("a.b"),\n      ],\n    })',
    '`new Some({ token: await account.token(), hosts: [account.via("a.b")] })`',
  ],
  ["(account) => {\n    const some = new Some(`v1`);\n    return some;\n  }", "`` const some = new Some(`v1`); ``"],
])("writes the set-up %j as one line", (connect, line) => {
  const source = `export const sdk = defineSdk({
  package: "some-sdk",
  connect: ${connect},
  routes: () => ({}),
});`;
  expect(sdksTable([source], new Map([["some-sdk", "1.2.3"]]))).toBe(
    `| SDK | Version | Set up |\n|---|---|---|\n| [some-sdk](https://www.npmjs.com/package/some-sdk) | 1.2.3 | ${line} |\n`,
  );
});
