import { parseUrl } from "../lib/parse-url.js";
import { isCanonical, isLoopback, parseOrigin } from "./origin.js";

const SHAPE = /^(https:\/\/[^/?#]*)([/?][^#{}]*)?$/;

/** Which endpoints a definition may name. */
export interface EndpointPolicy {
  /** http to loopback hosts, for development and tests. */
  readonly allowLoopback: boolean;
  /** The parameters of the definition's templated API origins: an endpoint may use no other. */
  readonly parameters: ReadonlySet<string>;
}

/**
 * Judges an endpoint of a definition: an https url, or a template of one such as
 * `https://{shop}.myshopify.com/admin/oauth/authorize`, whose host follows the rules of `apiOrigins`. Answers with what
 * is wrong, undefined when nothing is.
 */
export function endpointProblem(text: string, policy: EndpointPolicy): string | undefined {
  if (text.includes("{") || text.includes("}")) return templateProblem(text, policy);
  return isEndpoint(text, policy.allowLoopback) ? undefined : "must be an https url without userinfo or fragment";
}

/**
 * The url that an endpoint of a definition is for one connection: each `{parameter}` of its host replaced by the value
 * bound to the connection, lower-case as it is stored. An endpoint that is no template comes back as it is.
 *
 * Undefined when a parameter is missing or a value does not match its pattern: one DNS label, or a host name where the
 * parameter is the whole host.
 */
export function fillEndpoint(template: string, originParameters: Readonly<Record<string, string>>): string | undefined {
  if (!template.includes("{")) return template;
  const { rule, rest } = parseTemplate(template) ?? {};
  if (rule === undefined) return undefined;
  const origin = rule.template.replace(/\{([^}]*)\}/g, (whole, name: string) =>
    Object.hasOwn(originParameters, name) ? String(originParameters[name]) : whole,
  );
  // The pattern takes labels such as `xn--` that a URL parser refuses.
  const isHost = rule.pattern.test(origin) && isCanonical(origin);
  return isHost ? origin + rest : undefined;
}

function templateProblem(text: string, { parameters }: EndpointPolicy): string | undefined {
  const parsed = parseTemplate(text);
  if (parsed === undefined) return "a template must be https://host/path with its {parameter} in the host only";
  const { rule, rest, problem } = parsed;
  if (rule === undefined) return problem;
  const unknown = rule.parameters.find((name) => !parameters.has(name));
  if (unknown !== undefined) return `{${unknown}} is not a parameter of apiOrigins`;
  return isEndpoint(`https://example.com${rest}`, false) ? undefined : "the path is not what a URL parser makes of it";
}

/** The host of a template as an origin rule, or what is wrong with it, and the path and query after it. */
function parseTemplate(text: string) {
  const [, origin, rest = ""] = SHAPE.exec(text) ?? [];
  if (origin === undefined) return undefined;
  const rule = parseOrigin(origin, { allowLoopback: false, allowPrivateNetwork: false });
  if (typeof rule === "string") return { rule: undefined, rest, problem: rule };
  return rule.kind === "template" ? { rule, rest, problem: undefined } : undefined;
}

/** https, or http to loopback where that is allowed; the text is what a URL parser makes of it. */
function isEndpoint(text: string, allowLoopback: boolean): boolean {
  const url = parseUrl(text);
  if (url === undefined) return false;
  const isSecure = url.protocol === "https:" || (url.protocol === "http:" && allowLoopback && isLoopback(url.hostname));
  const isPlain = url.username === "" && url.password === "" && url.hash === "";
  return isSecure && isPlain && (url.href === text || url.href === `${text}/`);
}

/** Names with dots between them; as deep as a JSON path may go. */
const MEMBER_PATH = /^[^.\s]{1,64}(?:\.[^.\s]{1,64}){0,15}$/;

/** What a definition's dotted path of a JSON member must be, as a problem's text. */
export const MEMBER_PATH_HINT = "must be names with dots between them, such as error.code";

/** Whether a text of a definition is the dotted path of a JSON member: `error.code`. */
export function isMemberPath(text: string): boolean {
  return MEMBER_PATH.test(text);
}
