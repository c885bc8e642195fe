import { parseUrl } from "../lib/parse-url.js";
import { fillTemplate, namesIn, textIn, withDefaults } from "./connection-value.js";
import { type HostBounds, isCanonical, isLoopback, parseOrigin } from "./origin.js";
import type { ConnectionValue, OriginRule } from "./provider.js";

const SHAPE = /^(https?:\/\/[^/?#]*)([/?][^#]*)?$/;
/** A dot segment, which a URL parser removes. */
const DOTS = /^\.{1,2}$/;

/** Which endpoints a definition may name. */
export interface EndpointPolicy {
  /** http to loopback hosts, for development and tests. */
  readonly allowLoopback: boolean;
  /** Names of the connection values that an endpoint may use. */
  readonly names: ReadonlySet<string>;
  readonly bounds: HostBounds;
}

/**
 * Checks an endpoint of a definition: an https url, or a template of one such as
 * `https://{shop}.myshopify.com/admin/oauth/authorize`. A templated host follows the rules of `apiOrigins`; values in
 * path and query are percent-encoded. Returns the problem, or undefined.
 */
export function endpointProblem(text: string, policy: EndpointPolicy): string | undefined {
  if (!/[{}]/.test(text)) {
    return isEndpoint(text, policy.allowLoopback) ? undefined : "must be an https url without userinfo or fragment";
  }
  const unknown = namesIn(text).find((name) => !policy.names.has(name));
  if (unknown !== undefined) return `{${unknown}} is neither a connection value nor a parameter of apiOrigins`;
  const [, origin, rest = ""] = SHAPE.exec(text) ?? [];
  if (origin === undefined) return "a template must be https://host/path";
  const filled = fillTemplate(rest, () => "a") ?? "";
  if (/[{}]/.test(filled)) return "a parameter must be a lower-case name in braces, such as {subdomain}";
  if (!/[{}]/.test(origin)) {
    return isEndpoint(origin + filled, policy.allowLoopback)
      ? undefined
      : "the url is not in the form that a URL parser returns";
  }
  const rule = parseOrigin(origin, { allowLoopback: false, allowPrivateNetwork: false, bounds: policy.bounds });
  if (typeof rule === "string") return rule;
  return isEndpoint(`https://example.com${filled}`, false)
    ? undefined
    : "the path is not in the form that a URL parser returns";
}

/**
 * Fills an endpoint for one connection: replaces each `{name}` by the connection's value, percent-encoded in path and
 * query. Returns an endpoint without names unchanged.
 *
 * Undefined when a value is missing, or does not form a host that the template allows, or would be a dot segment.
 */
export function fillEndpoint(
  template: string,
  texts: Readonly<Record<string, string>>,
  values: readonly ConnectionValue[],
): string | undefined {
  if (!template.includes("{")) return template;
  // A connection made before the definition had the value uses the default.
  const textOf = textIn(withDefaults(texts, { connectionValues: values }));
  const rule = hostTemplateOf(template, boundsOf(values));
  const [, written = "", rest = ""] = SHAPE.exec(template) ?? [];
  const origin = fillTemplate(written, textOf);
  // The pattern accepts labels such as `xn--` that a URL parser refuses.
  const isHost =
    rule === undefined ? !/[{}]/.test(written) : rule.pattern.test(origin ?? "") && isCanonical(origin ?? "");
  if (!isHost || namesIn(rest).some((name) => DOTS.test(textOf(name) || "."))) return undefined;
  const tail = fillTemplate(rest, textOf, (text) => encodeURIComponent(text.toWellFormed()));
  return origin === undefined || tail === undefined ? undefined : origin + tail;
}

/** The host of an endpoint as an origin rule; undefined if it is not a template. */
export function hostTemplateOf(
  endpoint: string,
  bounds: HostBounds,
): Extract<OriginRule, { kind: "template" }> | undefined {
  const [, origin = ""] = SHAPE.exec(endpoint) ?? [];
  if (!origin.includes("{")) return undefined;
  const rule = parseOrigin(origin, { allowLoopback: false, allowPrivateNetwork: false, bounds });
  return typeof rule === "string" || rule.kind === "exact" ? undefined : rule;
}

/** The bounds of values as parts of a host. */
export function boundsOf(values: readonly Pick<ConnectionValue, "name" | "choices" | "hosts">[]): HostBounds {
  return new Map(
    values.map(({ name, choices, hosts }) => [name, { choices: choices.map(({ value }) => value), hosts }] as const),
  );
}

/**
 * Whether the text is an https url, or http to loopback where allowed, and already in the form a URL parser returns.
 */
function isEndpoint(text: string, allowLoopback: boolean): boolean {
  const url = parseUrl(text);
  if (url === undefined) return false;
  const isSecure = url.protocol === "https:" || (url.protocol === "http:" && allowLoopback && isLoopback(url.hostname));
  const isPlain = url.username === "" && url.password === "" && url.hash === "";
  return isSecure && isPlain && (url.href === text || url.href === `${text}/`);
}

/** Names separated by dots, at most as deep as a JSON path may be. */
const MEMBER_PATH = /^[^.\s]{1,64}(?:\.[^.\s]{1,64}){0,15}$/;

/** The problem text for an invalid dotted path of a JSON member. */
export const MEMBER_PATH_HINT = "must be names separated by dots, such as error.code";

/** Whether a text is the dotted path of a JSON member, such as `error.code`. */
export function isMemberPath(text: string): boolean {
  return MEMBER_PATH.test(text);
}
