import { readFileSync } from "node:fs";
import { describe, expect, it } from "vitest";
import { bundleForBrowser } from "./bundle.js";

const README = readFileSync("client/README.md", "utf8");

describe("the client package in a browser", () => {
  it.each([
    ["`connectAccount`", `export { connectAccount } from "./browser.js"`, ["client/src/browser.ts"]],
    [
      "`createRelayClient`",
      `export { createRelayClient } from "./client.js"`,
      ["client/src/client.ts", "client/src/proof.ts"],
    ],
  ])("%s is as large as its README says, and brings nothing else along", async (name, source, expected) => {
    const { script, inputs } = await bundleForBrowser(source);
    expect(inputs).toEqual(expected);
    const [, kilobytes] = new RegExp(`${name} (\\d+\\.\\d) KB`).exec(README) ?? [];
    expect(script.length / 1000).toBeLessThanOrEqual(Number(kilobytes));
    expect(script.length / 1000).toBeGreaterThan(Number(kilobytes) - 0.2);
  });
});
