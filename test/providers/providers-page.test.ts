import { readFileSync } from "node:fs";
import { describe, expect, it } from "vitest";
import { loadProviders } from "../../src/providers/catalog.js";
import { providersPage, REGENERATE } from "../support/providers-page.js";

describe("docs/providers.md", () => {
  it("has the numbers of the shipped definitions", async () => {
    const { catalog } = loadProviders({ paths: [], allowLoopback: false });
    const written = readFileSync("docs/providers.md", "utf8");
    expect(written, `docs/providers.md is out of date, write it with: ${REGENERATE}`).toBe(
      providersPage(await catalog.list()),
    );
  });
});
