import { existsSync, readFileSync, writeFileSync } from "node:fs";
import { basename, dirname } from "node:path";
import { fileURLToPath } from "node:url";
import asc from "assemblyscript/asc";

/** What is compiled, what the module is kept in, and under which name. */
interface WasmModule {
  readonly source: string;
  readonly compiled: string;
  readonly name: string;
}

/** Every module of AssemblyScript. */
export const WASM_MODULES: readonly WasmModule[] = [
  { source: "src/json/wasm/json-blocks.ts", compiled: "src/json/json-blocks-wasm.ts", name: "JSON_BLOCKS_WASM" },
  {
    source: "src/redaction/wasm/piece-search.ts",
    compiled: "src/redaction/piece-search-wasm.ts",
    name: "PIECE_SEARCH_WASM",
  },
];

const ROOT = fileURLToPath(new URL("../../", import.meta.url));

/** The text of `compiled`: the module that the compiler makes of `source`, in base64. */
export async function compiledText({ source, name }: WasmModule): Promise<string> {
  const lines =
    Buffer.from(await compile(source))
      .toString("base64")
      .match(/.{1,110}/g) ?? [];
  return `// Made of wasm/${basename(source)} by \`npm run wasm\`. Do not edit.

/** A WebAssembly module, in base64. */
export const ${name} =
${lines.map((line) => `  "${line}"`).join(" +\n")};
`;
}

async function compile(source: string): Promise<Uint8Array> {
  const folder = dirname(source);
  let module: Uint8Array | undefined;
  const options = ["-O3", "--noAssert", "--runtime", "stub", "--enable", "simd", "--outFile", "out.wasm"];
  const { error, stderr } = await asc.main([source, ...options], {
    readFile: (name) => (name.startsWith(folder) && existsSync(ROOT + name) ? readFileSync(ROOT + name, "utf8") : null),
    writeFile: (_name, contents) => {
      if (typeof contents !== "string") module = contents;
    },
    listFiles: () => [],
  });
  if (error !== null || module === undefined) throw new Error(`${source}: ${stderr.toString()}`);
  return module;
}

if (process.argv[1] === fileURLToPath(import.meta.url)) {
  for (const module of WASM_MODULES) writeFileSync(`${ROOT}${module.compiled}`, await compiledText(module));
}
