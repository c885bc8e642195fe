import type { Command } from "commander";
import type { ProviderProblem } from "../providers/problem.js";
import { addCommand } from "./command.js";
import { configFromEnvironment } from "./environment.js";
import { failure } from "./exit-error.js";
import { writeJson, writeLine } from "./output.js";
import { readInputFile } from "./read-input.js";

/** A hundred times the largest shipped definition. */
const MAX_DEFINITION_BYTES = 256 * 1024;

type Checked = { readonly file: string; readonly provider: string } | { readonly problems: readonly ProviderProblem[] };

/** `relay provider check` */
export function addProviderCheck(group: Command): void {
  addCommand(group, {
    usage: "check <file...>",
    about: "Check definition files and print every problem with its file and field.",
    examples: ["relay provider check my-provider.json", "relay provider check providers/*.json --json"],
    more: "Definitions with http or loopback origins pass only with RELAY_ALLOW_LOOPBACK=true.",
  }).action(checkFiles);
}

async function checkFiles(files: readonly string[], options: { readonly json?: boolean }): Promise<void> {
  const config = configFromEnvironment();
  const results: Checked[] = [];
  for (const file of files) results.push(await checkFile(file, config.allowLoopback));
  const providers = results.flatMap((result) => ("provider" in result ? [result] : []));
  const problems = results.flatMap((result) => ("problems" in result ? result.problems : []));
  if (problems.length === 0) problems.push(...(await clashes([...config.providers, ...files], config.allowLoopback)));
  const { textFromProblem } = await import("../providers/problem.js");
  if (options.json) writeJson({ ok: problems.length === 0, providers, problems });
  else for (const { file, provider } of providers) writeLine(`${file}: ok (${provider})`);
  if (problems.length > 0) throw failure(problems.map(textFromProblem).join("\n"));
}

async function checkFile(file: string, allowLoopback: boolean): Promise<Checked> {
  const { parseProvider } = await import("../providers/definition.js");
  const text = (await readInputFile(file, MAX_DEFINITION_BYTES)).toString();
  const parsed = parseProvider(text, file, { allowLoopback });
  return "problems" in parsed ? parsed : { file, provider: parsed.provider.name };
}

/** What is wrong only together with the other definitions: an alias that is taken. */
async function clashes(paths: readonly string[], allowLoopback: boolean): Promise<readonly ProviderProblem[]> {
  const { loadProviders } = await import("../providers/catalog.js");
  const { ProviderDefinitionError } = await import("../providers/problem.js");
  try {
    await loadProviders({ paths, allowLoopback });
    return [];
  } catch (error) {
    if (error instanceof ProviderDefinitionError) return error.problems;
    throw error;
  }
}
