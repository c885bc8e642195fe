import type { Assertion as Definition } from "../../gen/relay/admin/v1/provider_pb.js";
import { namesIn } from "./connection-value.js";
import { ASSERTION_ALGORITHMS, type Assertion, KEY_VALUES, type Report } from "./provider.js";

const USES = ["grant", "client_authentication", "access_token"] as const;
const MEMBER = /^[A-Za-z][A-Za-z0-9._:/#-]{0,127}$/;
const MAX_MEMBERS = 16;
const MAX_TEXT_LENGTH = 1024;
/** Those of RFC 7515 section 4.1 that say how the signature is to be read. */
const OWN_HEADER: ReadonlySet<string> = new Set(["alg", "typ", "crit", "b64", "jwk", "jku", "x5u"]);
/** RFC 7519 section 4.1. */
const OWN_CLAIMS: ReadonlySet<string> = new Set(["iat", "exp", "nbf", "jti"]);
/** In seconds. Providers take an hour at most, and 60 at least (Box). */
const LIFETIME = { least: 60, most: 3600, default: 300 } as const;

/**
 * Reads `oauth2.assertion` of a definition.
 *
 * @param names of the connection values that header and claims may hold.
 */
export function parseAssertion(definition: Definition, names: ReadonlySet<string>, report: Report): Assertion {
  const { algorithm: name, jti, use: text } = definition;
  const algorithm = ASSERTION_ALGORITHMS.find((known) => known === name);
  if (algorithm === undefined)
    report("oauth2.assertion.algorithm", `must be one of ${ASSERTION_ALGORITHMS.join(", ")}`);
  const use = USES.find((known) => known === (text || "grant"));
  if (use === undefined) report("oauth2.assertion.use", `must be one of ${USES.join(", ")}`);
  return {
    algorithm: algorithm ?? "RS256",
    header: parseMembers("header", definition.header, OWN_HEADER, names, report),
    claims: parseMembers("claims", definition.claims, OWN_CLAIMS, names, report),
    lifetimeSeconds: parseLifetime(definition, report),
    jti,
    use: use ?? "grant",
  };
}

function parseMembers(
  member: "header" | "claims",
  texts: Readonly<Record<string, string>>,
  own: ReadonlySet<string>,
  names: ReadonlySet<string>,
  report: Report,
): Readonly<Record<string, string>> {
  const entries = Object.entries(texts);
  const isKey = (name: string) => Object.values(KEY_VALUES).some((known) => known === name);
  if (entries.length > MAX_MEMBERS) report(`oauth2.assertion.${member}`, `must be at most ${MAX_MEMBERS}`);
  for (const [name, value] of entries) {
    const field = `oauth2.assertion.${member}.${name}`;
    const unknown = namesIn(value).find((each) => !names.has(each) || isKey(each));
    if (!MEMBER.test(name)) report(field, "must be a name of letters, digits and ._:/#-");
    else if (own.has(name)) report(field, "is set by the relay");
    if (value === "" || value.length > MAX_TEXT_LENGTH) report(field, `must be 1 to ${MAX_TEXT_LENGTH} characters`);
    if (unknown !== undefined) report(field, `{${unknown}} is no connection value that may be shown`);
  }
  return { ...texts };
}

function parseLifetime({ lifetimeSeconds: seconds }: Definition, report: Report): number {
  const { least, most } = LIFETIME;
  if (seconds === 0) return LIFETIME.default;
  if (seconds < least || seconds > most)
    report("oauth2.assertion.lifetimeSeconds", `must be ${least} to ${most} seconds`);
  return seconds;
}
