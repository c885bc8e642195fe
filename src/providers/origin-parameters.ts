import type { OriginRule, Provider } from "./provider.js";

/** Values for the parameters of a provider's templated origins, or what is wrong with them. */
export type OriginParameters =
  | { readonly values: Readonly<Record<string, string>> }
  | { readonly problem: string; readonly parameter: string };

type TemplateRule = Extract<OriginRule, { kind: "template" }>;

/** Names of the parameters, in the order of the templates; none for most providers. */
export function originParameterNames(provider: Pick<Provider, "origins">): readonly string[] {
  return [...new Set(templatesOf(provider).flatMap(({ parameters }) => parameters))];
}

/**
 * Judges values that a person gave: each parameter must be there, no other, and put in place they must make a host that
 * the template allows. Values come back lower-case, as hosts are compared.
 */
export function parseOriginParameters(
  given: ReadonlyMap<string, string>,
  provider: Pick<Provider, "name" | "origins">,
): OriginParameters {
  const names = originParameterNames(provider);
  const expectation = names.length === 0 ? "takes no parameters" : `takes ${names.join(", ")}`;
  const unknown = [...given.keys()].find((name) => !names.includes(name));
  if (unknown !== undefined) return { parameter: unknown, problem: `${provider.name} ${expectation}` };
  const missing = names.find((name) => !given.has(name));
  if (missing !== undefined) return { parameter: missing, problem: `is missing: ${provider.name} ${expectation}` };
  const values = Object.fromEntries([...given].map(([name, value]) => [name, lowerCase(value)]));
  const wrong = templatesOf(provider).find((rule) => !rule.pattern.test(originFrom(rule, values)));
  if (wrong === undefined) return { values };
  return { parameter: wrong.parameters.join(", "), problem: `does not make a valid host of ${wrong.template}` };
}

/**
 * The same for what a person wrote into a form, where a whole address such as `https://acme.example.com/` stands for
 * its parameter.
 */
export function parseOriginAnswers(
  given: ReadonlyMap<string, string>,
  provider: Pick<Provider, "name" | "origins">,
): OriginParameters {
  const hosts = new Map([...given].map(([name, text]) => [name, hostFrom(text)]));
  for (const host of hosts.values()) {
    for (const { pattern, parameters } of templatesOf(provider)) {
      const captured = pattern.exec(`https://${host}`)?.slice(1);
      for (const [at, value] of captured?.entries() ?? []) hosts.set(parameters[at] ?? "", value);
    }
  }
  return parseOriginParameters(hosts, provider);
}

function templatesOf({ origins }: Pick<Provider, "origins">): readonly TemplateRule[] {
  return origins.flatMap((rule) => (rule.kind === "template" ? [rule] : []));
}

function originFrom({ template, parameters }: TemplateRule, values: Readonly<Record<string, string>>): string {
  return parameters.reduce((text, name) => text.replace(`{${name}}`, () => values[name] ?? ""), template);
}

function hostFrom(text: string): string {
  return lowerCase(text.trim())
    .replace(/^https?:\/\//, "")
    .replace(/[/?#].*$/s, "");
}

/** ASCII only: other letters make no host. */
function lowerCase(text: string): string {
  return text.replace(/[A-Z]/g, (letter) => letter.toLowerCase());
}
