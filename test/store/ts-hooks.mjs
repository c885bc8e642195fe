import { readFile } from "node:fs/promises";
import { fileURLToPath } from "node:url";
import ts from "typescript";

/** Module hooks with which a child process of a test runs the sources as they are: `.js` in an import is a `.ts` file. */
export async function resolve(specifier, context, next) {
  if (!specifier.startsWith(".") || !context.parentURL?.endsWith(".ts")) return next(specifier, context);
  return next(specifier.replace(/\.js$/, ".ts"), context);
}

export async function load(url, context, next) {
  if (!url.endsWith(".ts")) return next(url, context);
  const text = await readFile(fileURLToPath(url), "utf8");
  const { outputText } = ts.transpileModule(text, {
    compilerOptions: { module: ts.ModuleKind.ESNext, target: ts.ScriptTarget.ES2022, verbatimModuleSyntax: true },
  });
  return { format: "module", source: outputText, shortCircuit: true };
}
