import { readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { describe, expect, it } from "vitest";
import { createFolder, startServe } from "../../cli/run-relay.js";

/** The packages of which `relay serve` has loaded modules by the time it listens. */
async function packagesLoaded(mcp: "on" | "off"): Promise<ReadonlySet<string>> {
  const folder = createFolder();
  const [preload, told] = [join(folder.path, "preload.mjs"), join(folder.path, "loaded.txt")];
  const hooks = `import { appendFileSync } from "node:fs";
    export function load(url, context, next) {
      appendFileSync(${JSON.stringify(told)}, url + "\\n");
      return next(url, context);
    }`;
  const url = `data:text/javascript,${encodeURIComponent(hooks)}`;
  writeFileSync(preload, `import { register } from "node:module";\nregister(${JSON.stringify(url)});`);
  await startServe(folder, { RELAY_MCP: mcp, NODE_OPTIONS: `--import ${preload}` });
  const loaded = readFileSync(told, "utf8").matchAll(/\/node_modules\/((?:@[^/]+\/)?[^/]+)\//g);
  return new Set([...loaded].map(([, name = ""]) => name));
}

describe("the SDK of the Model Context Protocol", () => {
  it("is loaded where agents are served alone, and none of the web servers that come with it ever", async () => {
    const [off, on] = await Promise.all([packagesLoaded("off"), packagesLoaded("on")]);
    expect(off).toContain("pino");
    const more = [...on].filter((name) => !off.has(name));
    expect(more.sort()).toEqual([
      "@modelcontextprotocol/sdk",
      "ajv",
      "ajv-formats",
      "content-type",
      "zod",
      "zod-to-json-schema",
    ]);
  });
});
