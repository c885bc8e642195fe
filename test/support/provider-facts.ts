import { readFileSync } from "node:fs";
import type { Provider, ProviderCatalog } from "../../src/providers/provider.js";

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
}

/** A row of test/providers/provider-facts.jsonl. */
interface Fact extends Statement {
  readonly name: string;
  readonly authMode?: string;
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
const KINDS: ReadonlyMap<string, string> = new Map([["OAUTH2", "oauth2"]]);

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
  const found = [name, plain, `${plain}key`].flatMap((each) => catalog.find(each) ?? []);
  return found.find((provider) => kindOf(provider) === KINDS.get(authMode));
}

function kindOf({ oauth2 }: Provider): string {
  return oauth2?.tokenEndpoint === undefined ? "none" : "oauth2";
}

function compare(provider: Provider, said: Statement & { readonly source: string }): Comparison[] {
  const { oauth2 } = provider;
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
  if (oauth2 === undefined) return url("api", origins.map(originOf), said.apiBase && originOf(said.apiBase));
  return [
    ...url("authorization", [oauth2.authorizationEndpoint], said.authorization),
    ...url("token", [oauth2.tokenEndpoint], said.token),
    ...url("refresh", [oauth2.refreshEndpoint ?? oauth2.tokenEndpoint], said.refresh),
    ...url("revocation", [oauth2.revocationEndpoint], said.revocation),
    ...url("api", origins.map(originOf), said.apiBase?.split(" || ").map(originOf).join(" || ")),
    ...same("scopeSeparator", oauth2.scopeSeparator, said.scopeSeparator?.replace("+", " ")),
    ...same("clientAuthentication", oauth2.clientAuthentication, said.clientAuthentication),
    ...same("pkce", String(oauth2.pkce), said.pkce?.toString()),
    ...same("tokenRequestFormat", oauth2.tokenRequestFormat, /^(?:form|json)$/.exec(said.tokenBody ?? "")?.[0]),
  ];
}

/** An address with its parameters unnamed and without what makes no difference: case of the host, query, last slash. */
function shapeOf(text: string): string {
  const plain = text.replace(/\$?\{[^}]*\}+|\[[^\]]*\]|%s/g, "{}").replace(/[?#].*$/s, "");
  return plain.replace(/^https:\/\/[^/]+/, (origin) => origin.toLowerCase()).replace(/\/$/, "");
}

function originOf(text: string): string {
  return /^https:\/\/[^/]+/.exec(shapeOf(text))?.[0] ?? "";
}
