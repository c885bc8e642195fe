import { parseOriginParameters } from "../providers/origin.js";
import type { Provider } from "../providers/provider.js";
import { usageError } from "./command.js";

/** Reads all `--param name=value`. Throws a usage error that names the parameter. */
export function originParametersFrom(given: readonly string[], provider: Provider): Readonly<Record<string, string>> {
  const parsed = parseOriginParameters(parsePairs(given), provider);
  if ("values" in parsed) return parsed.values;
  throw usageError(`--param ${parsed.parameter}: ${parsed.problem}.`);
}

function parsePairs(given: readonly string[]): Map<string, string> {
  const values = new Map<string, string>();
  for (const pair of given) {
    const equals = pair.indexOf("=");
    if (equals < 1) throw usageError(`--param must be name=value, such as subdomain=acme.`);
    const name = pair.slice(0, equals);
    if (values.has(name)) throw usageError(`--param ${name} is given twice; give it once.`);
    values.set(name, pair.slice(equals + 1));
  }
  return values;
}
