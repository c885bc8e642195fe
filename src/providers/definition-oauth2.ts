import type { OAuth2 as Definition } from "../../gen/relay/admin/v1/provider_pb.js";
import { isLoopback } from "./origin.js";
import type { Report } from "./problem.js";
import type { OAuth2 } from "./provider.js";

const CLIENT_AUTHENTICATIONS = ["client_secret_basic", "client_secret_post", "none"] as const;
const PARAMETER = /^[A-Za-z][A-Za-z0-9._-]{0,63}$/;
/** Parameters of the authorization request that the relay sets itself (RFC 6749 section 4.1.1, RFC 7636). */
const OWN_PARAMETERS = new Set([
  "response_type",
  "client_id",
  "redirect_uri",
  "scope",
  "state",
  "code_challenge",
  "code_challenge_method",
]);

/** Reads the `oauth2` member of a definition; defaults are those of RFC 6749. */
export function parseOAuth2(definition: Definition, allowLoopback: boolean, report: Report): OAuth2 {
  const endpoint = (field: "authorizationEndpoint" | "tokenEndpoint" | "revocationEndpoint") => {
    const text = definition[field];
    if (text === "") return undefined;
    if (!isEndpoint(text, allowLoopback))
      report(`oauth2.${field}`, "must be an https url without userinfo or fragment");
    return text;
  };
  const { scopeSeparator } = definition;
  if (!/^[\x20-\x7e]{0,3}$/.test(scopeSeparator))
    report("oauth2.scopeSeparator", "must be one character, such as a space");
  return {
    authorizationEndpoint: endpoint("authorizationEndpoint"),
    tokenEndpoint: endpoint("tokenEndpoint"),
    revocationEndpoint: endpoint("revocationEndpoint"),
    scopeSeparator: scopeSeparator === "" ? " " : scopeSeparator,
    pkce: definition.pkce,
    clientAuthentication: parseClientAuthentication(definition.clientAuthentication, report),
    authorizationParameters: parseParameters(definition.authorizationParameters, report),
  };
}

/** https, or http to loopback where that is allowed; the text is what a URL parser makes of it. */
function isEndpoint(text: string, allowLoopback: boolean): boolean {
  if (!URL.canParse(text)) return false;
  const url = new URL(text);
  const isSecure = url.protocol === "https:" || (url.protocol === "http:" && allowLoopback && isLoopback(url.hostname));
  const isPlain = url.username === "" && url.password === "" && url.hash === "";
  return isSecure && isPlain && (url.href === text || url.href === `${text}/`);
}

/** Basic by default: the one that every authorization server supports (RFC 6749 section 2.3.1). */
function parseClientAuthentication(text: string, report: Report): OAuth2["clientAuthentication"] {
  const known = CLIENT_AUTHENTICATIONS.find((name) => name === (text || "client_secret_basic"));
  if (known !== undefined) return known;
  report("oauth2.clientAuthentication", `must be one of ${CLIENT_AUTHENTICATIONS.join(", ")}`);
  return "client_secret_basic";
}

function parseParameters(
  parameters: Readonly<Record<string, string>>,
  report: Report,
): Readonly<Record<string, string>> {
  for (const name of Object.keys(parameters)) {
    const field = `oauth2.authorizationParameters.${name}`;
    if (!PARAMETER.test(name)) report(field, "must be letters, digits and ._-");
    else if (OWN_PARAMETERS.has(name)) report(field, "is set by the relay");
  }
  return { ...parameters };
}
