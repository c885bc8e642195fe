import { readFile } from "node:fs/promises";
import { createRequire } from "node:module";
import type { Result } from "axe-core";
import type { Page } from "playwright-core";

let source: Promise<string> | undefined;

/**
 * What axe finds on a page that is out of somebody's reach, one line for each element. The page must let scripts of others
 * run (`bypassCSP`).
 *
 * @param rules of axe; all by default.
 */
export async function violationsOn(page: Page, rules?: readonly string[]): Promise<readonly string[]> {
  source ??= readFile(createRequire(import.meta.url).resolve("axe-core/axe.min.js"), "utf8");
  if (!(await page.evaluate("'axe' in globalThis"))) await page.evaluate(await source);
  // What is right stays in the browser: it is a hundred times as long.
  const violations: readonly Result[] = await page.evaluate(
    `axe.run(${JSON.stringify({ resultTypes: ["violations"], ...(rules && { runOnly: rules }) })}).then(({ violations }) => violations)`,
  );
  return violations.flatMap(({ id, nodes }) => nodes.map(({ html }) => `${id}: ${html}`));
}
