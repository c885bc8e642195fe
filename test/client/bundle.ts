import { build } from "esbuild";

/**
 * Bundles a module that stands in client/src for browsers, minified, as a page's build does. Rejects where anything that it
 * imports is of Node.js.
 */
export async function bundleForBrowser(
  contents: string,
): Promise<{ readonly script: string; readonly inputs: readonly string[] }> {
  const { outputFiles, metafile } = await build({
    stdin: { contents, resolveDir: "client/src" },
    ...{ bundle: true, minify: true, write: false, metafile: true },
    ...{ platform: "browser", format: "esm", target: "es2022" },
  });
  const [output] = Object.values(metafile.outputs);
  const inputs = Object.entries(output?.inputs ?? {}).filter(([path, { bytesInOutput }]) => {
    return path !== "<stdin>" && bytesInOutput > 0;
  });
  return { script: outputFiles[0]?.text ?? "", inputs: inputs.map(([path]) => path).sort() };
}
