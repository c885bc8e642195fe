import { readFileSync } from "node:fs";
import { expect, it } from "vitest";
import { compiledText, WASM_MODULES } from "../support/wasm-modules.js";

it.each(WASM_MODULES)("keeps the module that `npm run wasm` makes of $source", async (module) => {
  expect(readFileSync(module.compiled, "utf8")).toBe(await compiledText(module));
});
