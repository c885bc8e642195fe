import { readFileSync } from "node:fs";
import { expect, it } from "vitest";
import { DOCUMENT, performanceText, REWRITE, SUMMARY, withPerformance } from "../support/performance-table.js";

it("shows in docs/performance.md the figures of the kept run", () => {
  const document = readFileSync(DOCUMENT, "utf8");
  const text = performanceText(JSON.parse(readFileSync(SUMMARY, "utf8")));
  expect(text).toMatch(/\| JSON route, 1 KiB, 32 callers \| \d+ \| \d\.\d\d × the bare relay/);
  expect(document, `out of date: ${REWRITE}`).toBe(withPerformance(document, text));
});
