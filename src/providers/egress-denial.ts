import type { Provider } from "./provider.js";
import type { UrlFault } from "./url-text.js";

/** Why a url is refused; a label for logs. */
export type DenyRule = UrlFault | "origin_not_listed" | "origin_not_bound" | "parser_disagreement";

/** Origins that a message names at most: it is one sentence. */
const MAX_NAMED_ORIGINS = 6;

/** A refusal, as the caller is told about it. */
export interface EgressDenied {
  readonly result: "deny";
  readonly rule: DenyRule;
  /** One sentence that says what to do; never holds the url. */
  readonly message: string;
}

const MESSAGES: Readonly<Record<DenyRule, string>> = {
  too_long: "The url is too long; send at most 8192 characters.",
  control: "The url holds a control character; percent-encode it.",
  surrogate: "The url is not valid Unicode text; percent-encode it as UTF-8.",
  space: "The url starts or ends with a space; remove it.",
  not_absolute: "The url is not absolute; write it as https://host/path.",
  scheme: "The url must start with https://.",
  backslash: "The url holds a backslash; write / or percent-encode it as %5C.",
  userinfo: "The url holds an @ before its path; remove the user name and password.",
  non_ascii_host: "The host in the url must be written in ASCII letters, digits, '-' and '.'.",
  host: "The host in the url must be a host name of letters, digits, '-' and '.'.",
  port: "The port in the url must be a number from 1 to 65535 without leading zeros.",
  origin_not_listed: "The url is not on this provider's API origins",
  origin_not_bound: "The host in the url is not the one this user connected; use the host of the user's own account.",
  parser_disagreement: "The url cannot be read without doubt; write it in its plain form.",
};

/** Puts a refusal into words. The provider's own list may be named, the caller's url never. */
export function decideDenial(rule: DenyRule, provider: Provider | undefined): EgressDenied {
  const hint = rule === "origin_not_listed" ? originHint(provider) : "";
  return { result: "deny", rule, message: MESSAGES[rule] + hint };
}

/** Names the listed origins; those of a private network are the operator's own business. */
function originHint(provider: Provider | undefined): string {
  if (provider === undefined || provider.allowPrivateNetwork) return "; see the provider's documentation.";
  if (provider.origins.length > MAX_NAMED_ORIGINS) return "; see the provider's documentation.";
  const named = provider.origins.map((rule) => (rule.kind === "exact" ? rule.origin : rule.template));
  return `; use one of: ${named.join(", ")}.`;
}
