import type { ConnectionValue as Definition } from "../../gen/relay/admin/v1/provider_pb.js";
import { isBasic, namesIn, problemOfValue } from "./connection-value.js";
import { type EndpointPolicy, endpointProblem, isMemberPath, MEMBER_PATH_HINT } from "./endpoint.js";
import { CONNECT_PARAMETERS, wholeHostOf } from "./origin.js";
import type { ConnectionKind, ConnectionValue, Credential, Provider, Report, ValueSource } from "./provider.js";

const NAME = /^[a-z][a-z0-9_]{0,31}$/;
/** Names that a connection value must not have. */
const RESERVED: ReadonlySet<string> = new Set([...CONNECT_PARAMETERS, "access_token", "id_token", "refresh_token"]);
const LABEL = /^[^\p{C}\p{Zl}\p{Zp}]{0,200}$/u;
const HELP = /^[^\p{C}\p{Zl}\p{Zp}]{0,500}$/u;
const CALLBACK_PARAMETER = /^[A-Za-z][A-Za-z0-9._-]{0,63}$/;
/** Parameters of RFC 6749 sections 4.1.2 and 4.1.2.1, RFC 9207 and RFC 5849 section 2.2. */
const ANSWER_PARAMETERS: ReadonlySet<string> = new Set(
  "code state error error_description iss oauth_token oauth_verifier".split(" "),
);
/** Tokens of RFC 6749 section 5.1 and RFC 5849 section 2.3. */
const TOKEN_MEMBER =
  /(?:^|\.)(?:access_token|refresh_token|id_token|oauth_token|oauth_token_secret|oauth_session_handle)$/;
const MAX_VALUES = 16;
const MAX_CHOICES = 100;

/** Where connection values are used. */
interface Uses extends Pick<Provider, "origins" | "hostTemplates"> {
  readonly places: readonly Credential[];
  /** Values of the default headers. */
  readonly headers: readonly string[];
}

/** Parses the values of a definition. Adds, at the end, parameters of origins that the definition does not describe. */
export function parseValues(
  kind: ConnectionKind,
  definitions: readonly Partial<Definition>[],
  uses: Uses,
  report: Report,
): readonly ConnectionValue[] {
  if (definitions.length > MAX_VALUES) report("connectionValues", `must have at most ${MAX_VALUES} entries`);
  const names = definitions.map(({ name }) => name);
  const parsed = definitions.map((definition, at) => {
    const reportMember: Report = (field, message) => report(`connectionValues[${at}].${field}`, message);
    if (names.indexOf(definition.name) !== at) reportMember("name", "appears twice");
    return parseValue(kind, definition, uses, reportMember);
  });
  const hostNames = uses.origins.flatMap((rule) => (rule.kind === "template" ? rule.parameters : []));
  const others = [...new Set(hostNames)].filter((name) => !names.includes(name));
  return [...parsed, ...others.map((name) => parseValue(kind, { name }, uses, () => {}))];
}

/**
 * Checks the lookup urls. They receive the token, so each must be at one of the origins, as the definition writes it.
 */
export function checkLookups(
  values: readonly ConnectionValue[],
  apiOrigins: readonly string[],
  policy: EndpointPolicy,
  report: Report,
): void {
  values.forEach(({ source }, at) => {
    if (source.kind !== "lookup") return;
    const problem = endpointProblem(source.url, policy);
    const isListed = apiOrigins.some((origin) => source.url.startsWith(`${origin}/`));
    if (problem !== undefined) report(`connectionValues[${at}].lookup.url`, problem);
    else if (!isListed) report(`connectionValues[${at}].lookup.url`, "must be at one of apiOrigins");
  });
}

function parseValue(
  kind: ConnectionKind,
  definition: Partial<Definition>,
  uses: Uses,
  report: Report,
): ConnectionValue {
  const {
    name = "",
    label = "",
    help = "",
    defaultValue = "",
    choices = [],
    secret = false,
    optional = false,
  } = definition;
  if (!NAME.test(name)) report("name", "must be 1 to 32 lower-case letters, digits and '_', starting with a letter");
  else if (RESERVED.has(name)) report("name", "is reserved: the relay has a parameter of this name");
  if (!LABEL.test(label)) report("label", "must be one line of at most 200 characters");
  if (!HELP.test(help)) report("help", "must be one line of at most 500 characters");
  if (secret && kind === "oauth2") report("secret", "is not allowed for the kind oauth2");
  if (secret && defaultValue !== "") report("defaultValue", "is not allowed for a secret value");
  if (secret && choices.length > 0) report("choices", "are not allowed for a secret value");
  if (choices.length > MAX_CHOICES) report("choices", `must have at most ${MAX_CHOICES} entries`);
  const isHost = uses.hostTemplates.some(({ parameters }) => parameters.includes(name));
  if (secret && isHost) report("secret", "is not allowed for a part of a host");
  const source = parseSource(definition, report);
  const { hosts = [] } = definition;
  if (hosts.length > 0 && choices.length > 0) report("hosts", "are not allowed together with choices");
  if (hosts.length > MAX_CHOICES) report("hosts", `must have at most ${MAX_CHOICES} entries`);
  const isWhole = uses.hostTemplates.some(({ template }) => wholeHostOf(template) === name);
  if (hosts.length > 0 && !isWhole)
    report("hosts", `are allowed only for a value that is a whole host: https://{${name}}`);
  const isTold = source.kind !== "asked" && source.kind !== "client";
  if (isWhole && isTold && hosts.length === 0 && choices.length === 0)
    report("hosts", "must list the allowed hosts; otherwise anybody's answer could decide where tokens are sent");
  const named = choices.map((choice) => ({ value: choice.value, label: choice.label || choice.value }));
  const value: ConnectionValue = {
    name,
    label,
    help,
    pattern: parsePattern(definition.pattern ?? "", report),
    defaultValue,
    choices: named,
    isSecret: secret,
    isOptional: optional,
    isPrintable: [...uses.places.filter(isAsIs).map((place) => place.value), ...uses.headers].some((text) =>
      namesIn(text).includes(name),
    ),
    isHost,
    hosts,
    keyFileMember: parseKeyFileMember(kind, definition, report),
    source,
  };
  named.forEach((choice, at) => {
    const problem = choice.value === "" ? "is empty" : problemOfValue(value, choice.value);
    if (problem !== undefined) report(`choices[${at}].value`, problem);
    else if (named.findIndex((other) => other.value === choice.value) !== at)
      report(`choices[${at}].value`, "appears twice");
    if (!LABEL.test(choice.label)) report(`choices[${at}].label`, "must be one line of at most 200 characters");
  });
  const problem = defaultValue === "" ? undefined : problemOfValue(value, defaultValue);
  if (problem !== undefined) report("defaultValue", problem);
  return value;
}

function parseKeyFileMember(
  kind: ConnectionKind,
  { keyFileMember: member = "" }: Partial<Definition>,
  report: Report,
): string | undefined {
  if (member === "") return undefined;
  if (kind !== "jwt_bearer") report("keyFileMember", `is not allowed for the kind ${kind}`);
  else if (!isMemberPath(member)) report("keyFileMember", MEMBER_PATH_HINT);
  return member;
}

function parseSource(definition: Partial<Definition>, report: Report): ValueSource {
  const { callbackParameter = "", tokenMember = "", lookup, client = false, secret = false } = definition;
  const named = [callbackParameter !== "", tokenMember !== "", lookup !== undefined, client].filter(Boolean);
  if (named.length > 1) report("client", "only one of callbackParameter, tokenMember, lookup and client may be set");
  if (named.length > 0 && secret) report("secret", "is allowed only for a value that the user enters");
  if (callbackParameter !== "") {
    if (!CALLBACK_PARAMETER.test(callbackParameter)) report("callbackParameter", "must be letters, digits and ._-");
    else if (ANSWER_PARAMETERS.has(callbackParameter)) report("callbackParameter", "is a parameter of OAuth itself");
    return { kind: "callback", parameter: callbackParameter };
  }
  if (tokenMember !== "") {
    if (!isMemberPath(tokenMember)) report("tokenMember", MEMBER_PATH_HINT);
    if (TOKEN_MEMBER.test(tokenMember)) report("tokenMember", "is a token, which is never shown");
    return { kind: "token", member: tokenMember };
  }
  if (lookup !== undefined) {
    if (!isMemberPath(lookup.member)) report("lookup.member", MEMBER_PATH_HINT);
    return { kind: "lookup", url: lookup.url, member: lookup.member };
  }
  return { kind: client ? "client" : "asked" };
}

/** Whether a place sends its text unencoded; base64 and percent-encoding accept any text. */
function isAsIs(place: Credential): boolean {
  return place.kind === "header" && !isBasic(place);
}

/** A part of a pattern that a matcher may have to try in several ways. */
const CHOICE = /[*+?|]|\{(\d+),(\d*)\}/g;
/** Longest text that is matched against a pattern, in characters. */
const MAX_MATCHED = 1024;
/** Most steps to match one text: about 10 ms. */
const MAX_WORK = 2 ** 17;

/**
 * Parses a pattern as HTML does (HTML standard, attribute `pattern`). User input is matched against it, so patterns
 * that could backtrack for long are refused (ReDoS).
 */
function parsePattern(text: string, report: Report): RegExp | undefined {
  if (text === "") return undefined;
  const plain = text
    .replace(/\\./g, "x")
    .replace(/\[[^\]]*\]/g, "x")
    .replaceAll("(?:", "(");
  const isSlow = /\)[*+?{]|\(\?/.test(plain) || /\\[1-9k]/.test(text) || workOf(plain) > MAX_WORK;
  if (text.length > 256 || isSlow) {
    report(
      "pattern",
      "must have at most 256 characters, no repeated groups, lookarounds or backreferences, at most one * or +, and few ? and |",
    );
    return undefined;
  }
  try {
    return new RegExp(`^(?:${text})$`, "v");
  } catch {
    // Not the engine's message, which differs between versions.
    report("pattern", "is not a valid regular expression with the flag v, which HTML uses");
    return undefined;
  }
}

/** In how many ways a pattern without repeated groups may be tried: each choice multiplies the others. */
function workOf(plain: string): number {
  return [...plain.matchAll(CHOICE)].reduce((work, [choice, least, most]) => {
    if (choice === "?" || choice === "|") return 2 * work;
    return work * (Number(most || MAX_MATCHED) - Number(least ?? 0) + 1);
  }, 1);
}
