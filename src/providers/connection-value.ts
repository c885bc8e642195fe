import { MIN_SECRET_LENGTH } from "../redaction/redact.js";
import type { ConnectionValue, Credential, Provider } from "./provider.js";

/** Longest non-secret value, and longest value that is matched against a pattern, in characters. */
const MAX_LENGTH = 1024;
/** Longest token or secret value, in characters: it must fit into one request header. */
export const MAX_SECRET_LENGTH = 16_384;
/** Characters that a request header may contain (RFC 9110 section 5.5). */
const PRINTABLE = /^[\x20-\x7e]*$/;
// biome-ignore lint/suspicious/noControlCharactersInRegex: finding them is the purpose
const CONTROL = /[\u0000-\u001f\u007f-\u009f\u2028\u2029]/;
/** A name in braces; the text that replaces it is never treated as a template. */
const NAMED = /\{([a-z][a-z0-9_]*)\}/g;

/** Connection values by name. */
export type ValueTexts = Readonly<Record<string, string>>;

/**
 * What is wrong with the text of a value, as the end of a sentence that begins with the value's name; undefined if it
 * is valid. Never contains the text. Pure.
 */
export function problemOfValue(value: ConnectionValue, text: string): string | undefined {
  const max = value.isSecret && value.pattern === undefined ? MAX_SECRET_LENGTH : MAX_LENGTH;
  if (text.length > max) return `must be at most ${max} characters`;
  if (value.isSecret && text.length < MIN_SECRET_LENGTH)
    return `must be at least ${MIN_SECRET_LENGTH} characters: a shorter one could not be redacted from answers`;
  if (CONTROL.test(text) || !text.isWellFormed()) return "must not contain line breaks or other control characters";
  if (text !== text.trim()) return "must not begin or end with a space";
  if (value.isPrintable && !PRINTABLE.test(text)) return "must be printable ASCII";
  if (value.choices.length > 0 && !value.choices.some((choice) => choice.value === text)) {
    return `must be one of ${value.choices.map((choice) => choice.value).join(", ")}`;
  }
  if (value.hosts.length > 0 && !value.hosts.some((host) => isOneOf(text, host))) {
    return `must be one of the hosts ${value.hosts.join(", ")}`;
  }
  if (value.pattern !== undefined && !value.pattern.test(text)) return `must match ${patternTextOf(value.pattern)}`;
  return undefined;
}

/** Whether a host is the bound itself, or a subdomain where the bound begins with `*.`. */
function isOneOf(host: string, bound: string): boolean {
  return bound.startsWith("*.") ? host.endsWith(bound.slice(1)) && host.length > bound.length - 1 : host === bound;
}

/** The pattern as written in a definition and in HTML. */
export function patternTextOf({ source }: RegExp): string {
  return source.slice("^(?:".length, -")$".length);
}

/** Whether a text of a definition contains names of connection values. */
export function isTemplate(text: string): boolean {
  return text.search(NAMED) !== -1;
}

/** Names in braces, in order. */
export function namesIn(template: string): readonly string[] {
  return [...template.matchAll(NAMED)].map(([, name = ""]) => name);
}

/** Replaces each name in the template by its text; undefined if one has none. Pure. */
export function fillTemplate(
  template: string,
  textOf: (name: string) => string | undefined,
  encode: (text: string) => string = (text) => text,
): string | undefined {
  let isWhole = true;
  const filled = template.replace(NAMED, (_, name: string) => {
    const text = textOf(name);
    isWhole &&= text !== undefined;
    return encode(text ?? "");
  });
  return isWhole ? filled : undefined;
}

/** Whether a credential is sent in base64 (RFC 7617 section 2); one without a colon counts as already encoded. */
export function isBasic(credential: Credential): boolean {
  return credential.kind === "header" && credential.scheme.toLowerCase() === "basic" && credential.value.includes(":");
}

/** Finds values by name; none that an object inherits. */
export function textIn(values: ValueTexts): (name: string) => string | undefined {
  return (name) => (Object.hasOwn(values, name) ? values[name] : undefined);
}

/** Fills one place: `text` is sent; `plain`, before base64, is for redaction. Undefined if a value is missing. Pure. */
export function fillCredential(
  credential: Credential,
  textOf: (name: string) => string | undefined,
): { readonly text: string; readonly plain: string } | undefined {
  const plain = fillTemplate(credential.value, textOf);
  if (plain === undefined) return undefined;
  return { text: isBasic(credential) ? Buffer.from(plain).toString("base64") : plain, plain };
}

/** Valid values, or the problem with one of them. */
type ParsedValues = { readonly values: ValueTexts } | { readonly problem: string; readonly parameter: string };

type TemplateRule = Provider["hostTemplates"][number];
type ValuesOf = Pick<Provider, "name" | "hostTemplates" | "connectionValues">;

/**
 * A class of values. `asked`: non-secret ones that the user enters before connecting. `open`: all non-secret ones,
 * which whoever stores a connection may supply. `secret`: those that are sealed.
 */
export type ValueClass = "asked" | "open" | "secret";

/** The values of a provider's connections of one class, in order. */
export function valuesOf(
  { connectionValues }: Pick<Provider, "connectionValues">,
  which: ValueClass,
): readonly ConnectionValue[] {
  return connectionValues.filter(({ isSecret, source }) => {
    if (isSecret !== (which === "secret")) return false;
    return which !== "asked" || source.kind === "asked";
  });
}

/**
 * Checks given values. Each required one without a default must be present and no unknown one may be; filled in, they
 * must form hosts that the templates allow. Parts of hosts are returned lower-case, since hosts are compared that way.
 * Defaults are not returned: see `withDefaults()`. Pure.
 *
 * @param isPartial whether any value may be missing.
 */
export function parseValues(
  given: ReadonlyMap<string, string>,
  provider: ValuesOf,
  which: ValueClass = "open",
  isPartial = false,
): ParsedValues {
  const wanted = valuesOf(provider, which);
  const what = which === "secret" ? "secrets" : "parameters";
  const names = wanted.map(({ name }) => name);
  const expectation = names.length === 0 ? `takes no ${what}` : `takes ${names.join(", ")}`;
  const unknown = [...given.keys()].find((name) => !names.includes(name));
  if (unknown !== undefined) return { parameter: unknown, problem: `${provider.name} ${expectation}` };
  const texts = new Map<string, string>();
  for (const value of wanted) {
    const { name, defaultValue, isHost, isOptional, source } = value;
    const written = given.get(name) ?? "";
    if (written === "" && (isOptional || isPartial || defaultValue !== "" || source.kind !== "asked")) continue;
    if (written === "") return { parameter: name, problem: `is missing: ${provider.name} ${expectation}` };
    const text = isHost ? lowerCase(written) : written;
    const fault = problemOfValue(value, text);
    if (fault !== undefined) return { parameter: name, problem: fault };
    texts.set(name, text);
  }
  const values = Object.fromEntries(texts);
  const whole = new Map(Object.entries(isPartial ? values : withDefaults(values, provider)));
  const wrong = which === "secret" ? undefined : provider.hostTemplates.find((rule) => isWrong(rule, whole));
  if (wrong === undefined) return { values };
  return { parameter: wrong.parameters.join(", "), problem: `does not form a valid host with ${wrong.template}` };
}

/**
 * Adds the defaults of values that are still unknown: to be called when nobody can give or report any of them any more.
 * Pure.
 */
export function withDefaults(
  known: ValueTexts,
  provider: Pick<Provider, "connectionValues">,
  which: Exclude<ValueClass, "secret"> = "open",
): ValueTexts {
  const defaults = valuesOf(provider, which).flatMap(({ name, defaultValue, isHost }) =>
    defaultValue === "" ? [] : [[name, isHost ? lowerCase(defaultValue) : defaultValue] as const],
  );
  return { ...Object.fromEntries(defaults), ...known };
}

/**
 * Checks values that a person entered in a form, as `parseValues()` does. Surrounding spaces are ignored, and a whole
 * address such as `https://acme.example.com/` may stand for the part that forms the host.
 */
export function parseAnswers(
  given: ReadonlyMap<string, string>,
  provider: ValuesOf,
  which: ValueClass = "asked",
  isPartial = false,
): ParsedValues {
  return parseValues(withHostParts(given, provider), provider, which, isPartial);
}

/**
 * Adds values that the provider reported to the known ones. An invalid text is ignored, as if it had not been reported.
 * Pure.
 */
export function withTold(known: ValueTexts, told: ReadonlyMap<string, string>, provider: ValuesOf): ValueTexts {
  const texts = new Map(Object.entries(known));
  for (const [name, text] of withHostParts(told, provider)) {
    const value = valuesOf(provider, "open").find((each) => each.name === name);
    // An address may contain other parts of hosts, which it must not change.
    if (!told.has(name) || text === "") continue;
    if (value === undefined || problemOfValue(value, text) !== undefined) continue;
    const tried = new Map(texts).set(name, text);
    const isMisfit = (rule: TemplateRule) => rule.parameters.includes(name) && isWrong(rule, tried);
    if (!provider.hostTemplates.some(isMisfit)) texts.set(name, text);
  }
  return Object.fromEntries(texts);
}

/** Names of the values that a connection requires and the texts lack. */
export function missingFrom(texts: ValueTexts, provider: Pick<Provider, "connectionValues">): readonly string[] {
  const needed = valuesOf(provider, "open").filter(({ isOptional }) => !isOptional);
  return needed.flatMap(({ name }) => (Object.hasOwn(texts, name) ? [] : [name]));
}

function withHostParts(
  given: ReadonlyMap<string, string>,
  { connectionValues, hostTemplates }: ValuesOf,
): ReadonlyMap<string, string> {
  const hosts = new Set(connectionValues.flatMap(({ name, isHost }) => (isHost ? [name] : [])));
  const texts = new Map([...given].map(([name, text]) => [name, hosts.has(name) ? hostFrom(text) : text.trim()]));
  for (const host of [...hosts].flatMap((name) => texts.get(name) ?? [])) {
    for (const { pattern, parameters } of hostTemplates) {
      const captured = pattern.exec(`https://${host}`)?.slice(1);
      for (const [at, value] of captured?.entries() ?? []) texts.set(parameters[at] ?? "", value);
    }
  }
  return texts;
}

/** Whether the texts form a host that the template does not allow; false while a part is unknown. */
function isWrong({ template, pattern, parameters }: TemplateRule, texts: ReadonlyMap<string, string>): boolean {
  if (!parameters.every((name) => texts.has(name))) return false;
  return !pattern.test(fillTemplate(template, (name) => texts.get(name)) ?? "");
}

function hostFrom(text: string): string {
  return lowerCase(text.trim())
    .replace(/^https?:\/\//, "")
    .replace(/[/?#].*$/s, "");
}

/** ASCII only: other letters cannot be part of a host, and Unicode case folding would turn U+212A into `k`. */
export function lowerCase(text: string): string {
  return text.replace(/[A-Z]/g, (letter) => letter.toLowerCase());
}
