import { isIPv4 } from "node:net";
import { parseUrl } from "../lib/parse-url.js";
import type { OriginRule, Provider } from "./provider.js";

/** Which origins that are not public https a definition may name. */
interface OriginPolicy {
  /** http, and loopback hosts, for development and tests. */
  readonly allowLoopback: boolean;
  /** IP addresses and single-label hosts of a private network (self-hosted providers). */
  readonly allowPrivateNetwork: boolean;
}

const SHAPE = /^(https?):\/\/([^:]*)(?::(.*))?$/s;
const OUTSIDE = /[/?#@\\*%\s]/;
const LABEL = /^[a-z0-9](?:[a-z0-9-]{0,61}[a-z0-9])?$/;
const PARAMETER = /^\{([a-z][a-z0-9_]{0,31})\}$/;
const MAX_HOST_LENGTH = 253;
/** Query parameters of a connect url, where the parameters of a template stand as well. */
const CONNECT_PARAMETERS: ReadonlySet<string> = new Set([
  "public_key",
  "user_id",
  "user_signature",
  "private_key",
  "redirect_uri",
  "opener_origin",
  "scope",
  "state",
  "code",
  "link",
  "session",
  "providers",
  "provider",
  "error",
  "outcome",
  "answer",
  "action",
  "iss",
]);

/** One DNS label, as a parameter captures it. */
const LABEL_SOURCE = "([a-z0-9](?:[a-z0-9-]{0,61}[a-z0-9])?)";
/** A complete host name of two labels or more; the last starts with a letter, so that it is never an IP address. */
const HOST_SOURCE =
  "(?=.{1,253}(?::|$))((?:[a-z0-9](?:[a-z0-9-]{0,61}[a-z0-9])?\\.)+[a-z](?:[a-z0-9-]{0,61}[a-z0-9])?)";

/**
 * Reads one entry of `apiOrigins`: `https://host[:port]`, or a template. Answers with what is wrong as text.
 *
 * A parameter of a template stands for exactly one DNS label in front of at least two fixed labels, or, alone, for a
 * complete host name (`https://{host}`).
 */
export function parseOrigin(text: string, policy: OriginPolicy): OriginRule | string {
  const [, scheme, host, port] = SHAPE.exec(text) ?? [];
  if (scheme === undefined || host === undefined) return "must be https://host or https://host:port";
  if (OUTSIDE.test(host + (port ?? ""))) return "must be an origin: no path, query, userinfo, wildcard or space";
  if (host !== host.toLowerCase()) return "must be lower-case";
  const problem = portProblem(scheme, port);
  if (problem !== undefined) return problem;
  return host.includes("{") ? parseTemplate(text, scheme, host, port) : parseExact(text, scheme, host, policy);
}

/** Whether the host is this machine, by name or IPv4 address. */
export function isLoopback(host: string): boolean {
  return host === "localhost" || (isIPv4(host) && host.startsWith("127."));
}

function portProblem(scheme: string, port: string | undefined): string | undefined {
  if (port === undefined) return undefined;
  if (!/^[1-9][0-9]{0,4}$/.test(port) || Number(port) > 65_535) return "the port must be a number from 1 to 65535";
  return port === (scheme === "https" ? "443" : "80") ? "must not name the default port" : undefined;
}

function parseExact(text: string, scheme: string, host: string, policy: OriginPolicy): OriginRule | string {
  const labels = host.split(".");
  if (host.length > MAX_HOST_LENGTH || !labels.every((label) => LABEL.test(label))) {
    return "the host must be a DNS name of letters, digits, '-' and '.', without a trailing dot";
  }
  const loopback = isLoopback(host);
  if (scheme === "http" && !(loopback && policy.allowLoopback)) {
    return "must use https; http is only for loopback hosts and only with RELAY_ALLOW_LOOPBACK=true";
  }
  const isPublicName = labels.length > 1 && /^[a-z]/.test(labels.at(-1) ?? "");
  if (!isPublicName && !policy.allowPrivateNetwork && !(loopback && policy.allowLoopback)) {
    return "an IP address or single-label host needs allowPrivateNetwork";
  }
  return isCanonical(text) ? { kind: "exact", origin: text } : "the host is not what a URL parser makes of it";
}

function parseTemplate(text: string, scheme: string, host: string, port: string | undefined): OriginRule | string {
  if (scheme !== "https") return "a template must use https";
  const labels = host.split(".");
  const parameters = labels.flatMap((label) => PARAMETER.exec(label)?.[1] ?? []);
  const fixed = labels.slice(parameters.length);
  if (parameters.length === 0 || fixed.some((label) => label.includes("{"))) {
    return "a parameter must be a whole label, such as {subdomain}, in front of the fixed labels";
  }
  if (new Set(parameters).size !== parameters.length) return "a parameter must not appear twice";
  const reserved = parameters.find((name) => CONNECT_PARAMETERS.has(name));
  if (reserved !== undefined)
    return `{${reserved}} must have another name: the connect url has a parameter of this one`;
  const suffix = port === undefined ? "" : `:${port}`;
  if (labels.length === 1) return templateRule(text, parameters, HOST_SOURCE + suffix);
  if (fixed.length < 2 || !isDomain(fixed)) {
    return "a template needs at least two fixed labels that form a DNS name, such as {subdomain}.example.com";
  }
  const source = [...parameters.map(() => LABEL_SOURCE), ...fixed].join("\\.");
  return templateRule(text, parameters, source + suffix);
}

function isDomain(labels: readonly string[]): boolean {
  return (
    labels.every((label) => LABEL.test(label)) &&
    /^[a-z]/.test(labels.at(-1) ?? "") &&
    isCanonical(`https://${labels.join(".")}`)
  );
}

function templateRule(template: string, parameters: readonly string[], source: string): OriginRule {
  return { kind: "template", template, parameters, pattern: new RegExp(`^https://${source}$`) };
}

/** Whether an origin is what the URL standard makes of it. */
export function isCanonical(origin: string): boolean {
  return parseUrl(origin)?.origin === origin;
}

/** Values for the parameters of a provider's templated origins, or what is wrong with them. */
type OriginParameters =
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

/** The origins that a connection with these values may reach; a template of which one is missing is none. */
export function originsFor({ origins }: Pick<Provider, "origins">, values: Readonly<Record<string, string>>): string[] {
  return origins.flatMap((rule) => {
    if (rule.kind === "exact") return [rule.origin];
    return rule.parameters.every((name) => Object.hasOwn(values, name)) ? [originFrom(rule, values)] : [];
  });
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
