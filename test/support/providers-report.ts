import { textTable } from "../../src/cli/command.js";
import { loadProviders } from "../../src/providers/catalog.js";
import { DIFFERENCES } from "../providers/fact-differences.js";
import { type Comparison, compareWithFacts } from "./provider-facts.js";

/** `npm run providers:report`: how far each definition agrees with public references, and why not where it does not. */
async function report(): Promise<number> {
  const { catalog } = loadProviders({ paths: [], allowLoopback: false });
  const comparisons = compareWithFacts(catalog);
  const names = [...new Set(comparisons.map(({ provider }) => provider))].sort();
  const rows = names.map((name) =>
    rowFrom(
      name,
      comparisons.filter(({ provider }) => provider === name),
    ),
  );
  process.stdout.write(`${textTable(["PROVIDER", "AGREE", "OF", "DIFFERENCES"], rows)}\n`);
  const agreeing = comparisons.filter(({ agrees }) => agrees).length;
  const open = comparisons.filter((each) => !each.agrees && reasonFor(each) === undefined).length;
  process.stdout.write(
    `\n${(await catalog.list()).length} definitions, ${names.length} of them in the references: ${comparisons.length} statements compared, ${agreeing} agree, ${comparisons.length - agreeing} differ, ${open} of these without a reason.\n`,
  );
  return open;
}

function rowFrom(provider: string, all: readonly Comparison[]): string[] {
  const different = all.filter(({ agrees }) => !agrees);
  const fields = [...new Set(different.map((each) => `${each.field} (${reasonFor(each) ?? "NO REASON"})`))];
  return [provider, String(all.length - different.length), String(all.length), fields.join("; ")];
}

function reasonFor({ provider, field }: Comparison): string | undefined {
  return DIFFERENCES.find(({ of }) => of.split(/\s+/).includes(`${provider}.${field}`))?.reason;
}

process.exitCode = (await report()) === 0 ? 0 : 1;
