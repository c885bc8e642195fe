import { readFileSync } from "node:fs";
import { expect, it } from "vitest";
import { performanceText, REWRITE, readmeWithPerformance, SUMMARY } from "../support/performance-table.js";

it("shows in the README the figures of the kept run", () => {
  const readme = readFileSync("README.md", "utf8");
  const text = performanceText(JSON.parse(readFileSync(SUMMARY, "utf8")));
  expect(text).toMatch(/\| JSON route, 1 KiB, 32 callers \| \d+ \| \d\.\d\d × the bare relay \|/);
  expect(readme, `out of date: ${REWRITE}`).toBe(readmeWithPerformance(readme, text));
});
