import { existsSync, readFileSync, writeFileSync } from "node:fs";
import { fileURLToPath } from "node:url";
import asc from "assemblyscript/asc";

const FOLDER = "src/json/wasm/";
const SOURCE = `${FOLDER}json-blocks.ts`;

/** What the compiled module is kept in. */
export const COMPILED = "src/json/json-blocks-wasm.ts";

const ROOT = fileURLToPath(new URL("../../", import.meta.url));

/** The text of {@link COMPILED}: the module that the compiler makes of {@link SOURCE}, in base64. */
export async function compiledJsonBlocks(): Promise<string> {
  let module: Uint8Array | undefined;
  const options = ["-O3", "--noAssert", "--runtime", "stub", "--enable", "simd", "--outFile", "out.wasm"];
  const { error, stderr } = await asc.main([SOURCE, ...options], {
    readFile: (name) => (name.startsWith(FOLDER) && existsSync(ROOT + name) ? readFileSync(ROOT + name, "utf8") : null),
    writeFile: (_name, contents) => {
      if (typeof contents !== "string") module = contents;
    },
    listFiles: () => [],
  });
  if (error !== null || module === undefined) throw new Error(`${SOURCE}: ${stderr.toString()}`);
  const lines =
    Buffer.from(module)
      .toString("base64")
      .match(/.{1,110}/g) ?? [];
  return `// Made of wasm/json-blocks.ts by \`npm run wasm\`. Do not edit.

/** A WebAssembly module, in base64. */
export const JSON_BLOCKS_WASM =
${lines.map((line) => `  "${line}"`).join(" +\n")};
`;
}

if (process.argv[1] === fileURLToPath(import.meta.url)) writeFileSync(`${ROOT}${COMPILED}`, await compiledJsonBlocks());
