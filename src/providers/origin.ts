import { isIPv4 } from "node:net";
import { getDomain } from "tldts-icann";
import { parseUrl } from "../lib/parse-url.js";
import { fillTemplate, textIn } from "./connection-value.js";
import type { OriginRule, Provider } from "./provider.js";

/** Which origins other than public https ones a definition may name. */
interface OriginPolicy {
  /** http, and loopback hosts, for development and tests. */
  readonly allowLoopback: boolean;
  /** IP addresses and single-label hosts of a private network (self-hosted providers). */
  readonly allowPrivateNetwork: boolean;
  /** The definition's bounds of connection values; none by default. */
  readonly bounds?: HostBounds;
}

/** Bounds of connection values as parts of a host, by name. */
export type HostBounds = ReadonlyMap<string, HostBound>;

/** The only choices for a value, or the hosts and `*.` suffixes that it must match. Both empty: any label or host. */
interface HostBound {
  readonly choices: readonly string[];
  readonly hosts: readonly string[];
}

const SHAPE = /^(https?):\/\/([^:]*)(?::(.*))?$/s;
const OUTSIDE = /[/?#@\\*%\s]/;
const LABEL = /^[a-z0-9](?:[a-z0-9-]{0,61}[a-z0-9])?$/;
const PARAMETER = /^[a-z][a-z0-9_]{0,31}$/;
/** A label with one parameter and otherwise only host characters. */
const VARIABLE_LABEL = /^[a-z0-9-]*\{[^{}]*\}[a-z0-9-]*$/;
const IN_BRACES = /\{([^{}]*)\}/g;
/** Most hosts that the choices of one template may form; no provider has that many regions. */
const MAX_EXPANSIONS = 1000;
const MAX_HOST_LENGTH = 253;
/** Query parameters of a connect url, which also carries the parameters of a template. */
export const CONNECT_PARAMETERS: ReadonlySet<string> = new Set(
  `public_key user_id user_signature private_key redirect_uri opener_origin scope state code
   link session providers provider error outcome answer action iss`.split(/\s+/),
);

/** One DNS label, as a parameter captures it. */
const LABEL_SOURCE = "([a-z0-9](?:[a-z0-9-]{0,61}[a-z0-9])?)";
/** A complete host name of at least two labels; the last begins with a letter, so that it is never an IP address. */
const HOST_SOURCE =
  "(?=.{1,253}(?::|$))((?:[a-z0-9](?:[a-z0-9-]{0,61}[a-z0-9])?\\.)+[a-z](?:[a-z0-9-]{0,61}[a-z0-9])?)";

/**
 * Parses one entry of `apiOrigins`: `https://host[:port]`, or a template. Returns the problem as text if there is one.
 *
 * A parameter of a template is one of three things: exactly one DNS label, or part of one, before at least two fixed
 * labels; one of its choices, anywhere in the host; or, on its own, a complete host name (`https://{host}`), limited to
 * its hosts if it has any.
 */
export function parseOrigin(text: string, policy: OriginPolicy): OriginRule | string {
  const [, scheme, host, port] = SHAPE.exec(text) ?? [];
  if (scheme === undefined || host === undefined) return "must be https://host or https://host:port";
  if (OUTSIDE.test(host + (port ?? ""))) return "must be an origin: no path, query, userinfo, wildcard or space";
  if (host !== host.toLowerCase()) return "must be lower-case";
  const problem = portProblem(scheme, port);
  if (problem !== undefined) return problem;
  return /[{}]/.test(host)
    ? parseTemplate(text, scheme, host, port, policy.bounds)
    : parseExact(text, scheme, host, policy);
}

/** Whether the host is this machine, by name or IPv4 address. */
export function isLoopback(host: string): boolean {
  return host === "localhost" || (isIPv4(host) && host.startsWith("127."));
}

/** The parameter that is the whole host of an endpoint or origin, if one is: whoever chooses it chooses the host. */
export function wholeHostOf(template: string): string | undefined {
  return /^https:\/\/\{([^}]*)\}(?:[:/?]|$)/.exec(template)?.[1];
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
    return "must use https; http is allowed only for loopback hosts, with RELAY_ALLOW_LOOPBACK=true";
  }
  const isPublicName = labels.length > 1 && /^[a-z]/.test(labels.at(-1) ?? "");
  if (!isPublicName && !policy.allowPrivateNetwork && !(loopback && policy.allowLoopback)) {
    return "an IP address or single-label host needs allowPrivateNetwork";
  }
  return isCanonical(text) ? { kind: "exact", origin: text } : "the host is not in the form that a URL parser returns";
}

function parseTemplate(
  text: string,
  scheme: string,
  host: string,
  port: string | undefined,
  bounds: HostBounds = new Map(),
): OriginRule | string {
  if (scheme !== "https") return "a template must use https";
  const parameters = [...host.matchAll(IN_BRACES)].map(([, name = ""]) => name);
  if (!parameters.every((name) => PARAMETER.test(name)) || host.replace(IN_BRACES, "").match(/[{}]/)) {
    return "a parameter must be a lower-case name in braces, such as {subdomain}";
  }
  if (new Set(parameters).size !== parameters.length) return "a parameter must not appear twice";
  const reserved = parameters.find((name) => CONNECT_PARAMETERS.has(name));
  if (reserved !== undefined) return `{${reserved}} is reserved: the connect url has a parameter of this name`;
  const problem = templateProblem(host, parameters, bounds);
  if (problem !== undefined) return problem;
  const isWhole = host === `{${parameters[0]}}`;
  const source = host
    .split(/(\{[^{}]*\})/)
    .map((part) => (part.startsWith("{") ? sourceOf(bounds.get(part.slice(1, -1)), isWhole) : escaped(part)))
    .join("");
  const end = port === undefined ? "" : `:${port}`;
  return { kind: "template", template: text, parameters, pattern: new RegExp(`^https://${source}${end}$`) };
}

/** Checks the host with every combination of choices filled in. */
function templateProblem(host: string, parameters: readonly string[], bounds: HostBounds): string | undefined {
  const [first = ""] = parameters;
  const whole = bounds.get(first);
  const withHosts = parameters.find((name) => (bounds.get(name)?.hosts.length ?? 0) > 0);
  if (withHosts !== undefined && host !== `{${withHosts}}`)
    return `{${withHosts}} has hosts, so it must be the whole host`;
  if (host === `{${first}}` && (whole?.choices.length ?? 0) === 0) {
    return whole?.hosts.every(isHostBound) === false
      ? `{${first}} has hosts that are not names such as api.example.com or *.example.com, whose domain has one owner`
      : undefined;
  }
  const hosts = expansionsOf(host, parameters, bounds);
  if (hosts === undefined) return `the choices form more than ${MAX_EXPANSIONS} hosts`;
  for (const each of hosts) {
    const problem = expandedProblem(each);
    if (problem !== undefined) return problem;
  }
  return undefined;
}

function expansionsOf(host: string, parameters: readonly string[], bounds: HostBounds): readonly string[] | undefined {
  let hosts: readonly string[] = [host];
  for (const name of parameters) {
    const choices = bounds.get(name)?.choices ?? [];
    if (choices.length === 0) continue;
    if (hosts.length * choices.length > MAX_EXPANSIONS) return undefined;
    hosts = hosts.flatMap((each) => choices.map((choice) => each.replace(`{${name}}`, () => choice)));
  }
  return hosts;
}

/** Checks one host; a name still in braces can be any label. */
function expandedProblem(host: string): string | undefined {
  const labels = host.split(".");
  const fixed = labels.slice(labels.findLastIndex((label) => label.includes("{")) + 1);
  const variable = labels.slice(0, labels.length - fixed.length).filter((label) => label.includes("{"));
  if (!variable.every((label) => VARIABLE_LABEL.test(label) && !/^-|-$/.test(label))) {
    return "a parameter must be in a label of its own, such as {subdomain} or {subdomain}-api";
  }
  if (fixed.length < 2 || !isDomain(fixed) || !isDomain(labels.map((label) => label.replace(IN_BRACES, "a")))) {
    return "a template needs at least two fixed labels that form a DNS name, such as {subdomain}.example.com";
  }
  const suffix = fixed.join(".");
  return isOwned(suffix) ? undefined : `anybody can register a name below ${suffix}, and would receive tokens`;
}

/**
 * Whether all names below this one have the same owner; not so for a public suffix (https://publicsuffix.org, co.uk).
 */
function isOwned(name: string): boolean {
  return (getDomain(`a.${name}`)?.length ?? Number.POSITIVE_INFINITY) <= name.length;
}

/** Whether a text is a valid host bound: a DNS name, or `*.` followed by one. */
function isHostBound(text: string): boolean {
  const name = text.replace(/^\*\./, "");
  const labels = name.split(".");
  return text.length <= MAX_HOST_LENGTH && labels.length >= 2 && isDomain(labels) && isOwned(name);
}

function sourceOf(bound: HostBound | undefined, isWhole: boolean): string {
  if (bound !== undefined && bound.choices.length > 0) return `(${bound.choices.map(escaped).join("|")})`;
  if (bound !== undefined && bound.hosts.length > 0) return `(${bound.hosts.map(hostSource).join("|")})`;
  return isWhole ? HOST_SOURCE : LABEL_SOURCE;
}

/** The pattern of a host bound: `*.example.com` matches every host below it, but not `example.com` itself. */
function hostSource(host: string): string {
  if (!host.startsWith("*.")) return escaped(host);
  return `(?=.{1,253}(?::|$))(?:[a-z0-9](?:[a-z0-9-]{0,61}[a-z0-9])?\\.)+${escaped(host.slice(2))}`;
}

function escaped(text: string): string {
  return text.replace(/[^a-z0-9-]/g, (sign) => `\\${sign}`);
}

function isDomain(labels: readonly string[]): boolean {
  return (
    labels.every((label) => LABEL.test(label)) &&
    /^[a-z]/.test(labels.at(-1) ?? "") &&
    isCanonical(`https://${labels.join(".")}`)
  );
}

/** Whether an origin is in the URL standard's canonical form. */
export function isCanonical(origin: string): boolean {
  return parseUrl(origin)?.origin === origin;
}

/** The origins that a connection with these values may reach; leaves out templates with a missing value. */
export function originsFor({ origins }: Pick<Provider, "origins">, values: Readonly<Record<string, string>>): string[] {
  return origins.flatMap((rule) =>
    rule.kind === "exact" ? [rule.origin] : (fillTemplate(rule.template, textIn(values)) ?? []),
  );
}
