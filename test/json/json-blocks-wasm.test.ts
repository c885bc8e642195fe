import { readFileSync } from "node:fs";
import { expect, it } from "vitest";
import { COMPILED, compiledJsonBlocks } from "../support/json-blocks-wasm.js";

it("keeps the module that `npm run wasm` makes of its source", async () => {
  expect(readFileSync(COMPILED, "utf8")).toBe(await compiledJsonBlocks());
});
