import { readFileSync } from "node:fs";
import { isBasic } from "../../src/providers/connection-value.js";
import { placesOf } from "../../src/providers/credential.js";
import type { Credential, Provider, ProviderCatalog } from "../../src/providers/provider.js";

/** What one public reference says of a provider: facts as found, some of them old or wrong. */
interface Statement {
  readonly authorization?: string;
  readonly token?: string;
  readonly refresh?: string;
  readonly revocation?: string;
  readonly scopeSeparator?: string;
  readonly clientAuthentication?: string;
  readonly pkce?: boolean;
  readonly tokenBody?: string;
  readonly apiBase?: string;
  readonly authMode?: string;
  readonly headers?: Readonly<Record<string, string>>;
  readonly query?: Readonly<Record<string, string>>;
}

/** A row of test/providers/provider-facts.jsonl. */
interface Fact extends Statement {
  readonly name: string;
  readonly otherSources?: ReadonlyArray<Statement & { readonly source: string }>;
}

/** One thing that a reference says, next to what the definition says. */
export interface Comparison {
  readonly provider: string;
  readonly field: string;
  readonly source: string;
  readonly ours: string;
  readonly theirs: string;
  readonly agrees: boolean;
}

/** How the references call the kinds of a definition; rows of others are about something else. */
const KINDS: ReadonlyMap<string, readonly string[]> = new Map([
  ["OAUTH2", ["oauth2"]],
  // Some prove the client by a key.
  ["OAUTH2_CC", ["client_credentials", "jwt_bearer"]],
  ["JWT", ["jwt_bearer"]],
  // Of those with a request of their own, some send an assertion.
  ["TWO_STEP", ["jwt_bearer"]],
  ["API_KEY", ["api_key"]],
  // Some keys are sent as user name or password.
  ["BASIC", ["basic", "api_key"]],
  ["OAUTH1", ["oauth1"]],
]);

const FILE = new URL("../providers/provider-facts.jsonl", import.meta.url);

/** Compares every definition with every row that is about it. */
export function compareWithFacts(catalog: ProviderCatalog): Comparison[] {
  const rows = readFileSync(FILE, "utf8").trim().split("\n");
  return rows.flatMap((line) => {
    const { otherSources = [], ...row } = JSON.parse(line) as Fact;
    const provider = definitionOf(row, catalog);
    if (provider === undefined) return [];
    return [{ source: row.name, ...row }, ...otherSources].flatMap((said) => compare(provider, said));
  });
}

/** By name or alias, with and without hyphens; keys of a provider with OAuth 2.0 have a definition of their own. */
function definitionOf({ name, authMode = "" }: Fact, catalog: ProviderCatalog): Provider | undefined {
  const plain = name.replaceAll("-", "");
  const found = [name, plain, `${plain}key`, `${plain}oauth1`].flatMap((each) => catalog.find(each) ?? []);
  return found.find(({ kind }) => KINDS.get(authMode)?.includes(kind));
}

function compare(provider: Provider, said: Statement & { readonly source: string }): Comparison[] {
  const { oauth2, oauth1 } = provider;
  const origins = provider.origins.map((rule) => (rule.kind === "exact" ? rule.origin : rule.template));
  const same = (field: string, ours: string | undefined, theirs: string | undefined): Comparison[] => {
    if (theirs === undefined) return [];
    return [{ provider: provider.name, field, source: said.source, ours: ours ?? "", theirs, agrees: ours === theirs }];
  };
  const url = (field: string, ours: readonly (string | undefined)[], theirs: string | undefined): Comparison[] => {
    // Some references hold program text where an address is meant.
    const urls = (theirs ?? "")
      .split(" || ")
      .map(shapeOf)
      .filter((each) => each.startsWith("https://"));
    const own = ours.flatMap((each) => (each === undefined ? [] : [shapeOf(each)]));
    const match = urls.find((each) => own.includes(each));
    return urls.length === 0 ? [] : same(field, match ?? own.join(" "), match ?? urls.join(" "));
  };
  const api = url("api", origins.map(originOf), said.apiBase?.split(" || ").map(originOf).join(" || "));
  if (oauth1 !== undefined) {
    const { authorizationEndpoint, tokenEndpoint } = oauth1;
    return [
      ...api,
      ...url("authorization", [authorizationEndpoint], said.authorization),
      ...url("token", [tokenEndpoint], said.token),
    ];
  }
  if (oauth2 === undefined) {
    const ours = placesOf(provider).map(placeText);
    const theirs = placeSaid(said);
    return [...api, ...same("credential", ours.find((place) => place === theirs) ?? ours.join(", "), theirs)];
  }
  return [
    ...api,
    ...url("authorization", [oauth2.authorizationEndpoint], said.authorization),
    ...url("token", [oauth2.tokenEndpoint], said.token),
    ...url("refresh", [oauth2.refreshEndpoint ?? oauth2.tokenEndpoint], said.refresh),
    ...url("revocation", [oauth2.revocationEndpoint], said.revocation),
    ...same("scopeSeparator", oauth2.scopeSeparator, said.scopeSeparator?.replace("+", " ")),
    ...same("clientAuthentication", oauth2.clientAuthentication, said.clientAuthentication),
    ...same("pkce", String(oauth2.pkce), said.pkce?.toString()),
    ...same("tokenRequestFormat", oauth2.tokenRequestFormat, /^(?:form|json)$/.exec(said.tokenBody ?? "")?.[0]),
  ];
}

/** Where a credential goes, with what it is made of left open: `authorization: Token token={}`. */
function placeText(credential: Credential): string {
  const value = credential.value.replace(/\{[^}]*\}/g, "{}");
  if (credential.kind === "query") return `?${credential.parameter}=${value}`;
  // User name and password are the reference's own affair.
  if (isBasic(credential)) return "Basic";
  return `${credential.name}: ${credential.scheme} ${value}`.replace(":  ", ": ");
}

function placeSaid({ authMode, headers = {}, query = {} }: Statement): string | undefined {
  const ofKey = (pairs: Readonly<Record<string, string>>) =>
    Object.entries(pairs).find(([, value]) => /\{(?:apiKey|api_key)\}/.test(value));
  const header = ofKey(headers);
  const parameter = ofKey(query);
  if (header !== undefined) return `${header[0]}: ${header[1].replace(/\{[^}]*\}/g, "{}")}`;
  if (parameter !== undefined) return `?${parameter[0]}={}`;
  return authMode === "BASIC" && headers["authorization"] === undefined ? "Basic" : undefined;
}

/** An address with its parameters unnamed and without what makes no difference: case of the host, query, last slash. */
function shapeOf(text: string): string {
  const plain = text.replace(/\$?\{[^}]*\}+|\[[^\]]*\]|%s/g, "{}").replace(/[?#].*$/s, "");
  return plain.replace(/^https:\/\/[^/]+/, (origin) => origin.toLowerCase()).replace(/\/$/, "");
}

function originOf(text: string): string {
  return /^https:\/\/[^/]+/.exec(shapeOf(text))?.[0] ?? "";
}
