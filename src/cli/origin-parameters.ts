import type { Provider } from "../providers/provider.js";
import { usageError } from "./exit-error.js";

/**
 * Reads `--param name=value` for the provider's templated origins: each of their parameters must be given, no other,
 * and put in place they must make a host that the template allows. Values come back lower-case, as hosts are compared.
 * Throws a usage error that names the parameter.
 */
export function parseOriginParameters(given: readonly string[], provider: Provider): Readonly<Record<string, string>> {
  const templates = provider.origins.flatMap((rule) => (rule.kind === "template" ? [rule] : []));
  const expected = new Set(templates.flatMap(({ parameters }) => parameters));
  const values = parsePairs(given);
  for (const name of values.keys()) {
    if (!expected.has(name)) throw usageError(`--param ${name}: ${provider.name} ${expectation(expected)}.`);
  }
  for (const name of expected) {
    if (!values.has(name))
      throw usageError(`--param ${name}=VALUE is missing: ${provider.name} ${expectation(expected)}.`);
  }
  for (const { template, parameters, pattern } of templates) {
    const origin = parameters.reduce((text, name) => text.replace(`{${name}}`, () => values.get(name) ?? ""), template);
    if (!pattern.test(origin)) {
      throw usageError(`--param ${parameters.join(", ")}: does not make a valid host of ${template}.`);
    }
  }
  return Object.fromEntries(values);
}

function parsePairs(given: readonly string[]): Map<string, string> {
  const values = new Map<string, string>();
  for (const pair of given) {
    const equals = pair.indexOf("=");
    if (equals < 1) throw usageError(`--param must be name=value, such as subdomain=acme.`);
    const name = pair.slice(0, equals);
    if (values.has(name)) throw usageError(`--param ${name} is given twice; give it once.`);
    values.set(
      name,
      pair.slice(equals + 1).replace(/[A-Z]/g, (letter) => letter.toLowerCase()),
    );
  }
  return values;
}

function expectation(expected: ReadonlySet<string>): string {
  return expected.size === 0 ? "takes no parameters" : `takes ${[...expected].join(", ")}`;
}
