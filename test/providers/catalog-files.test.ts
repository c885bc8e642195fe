import { readdirSync, readFileSync } from "node:fs";
import { describe, expect, it } from "vitest";
import { loadProviders } from "../../src/providers/catalog.js";
import { parseProvider } from "../../src/providers/definition.js";
import { decideBoundOrigin, decideEgress } from "../../src/providers/egress.js";
import { fillEndpoint } from "../../src/providers/endpoint.js";
import { type ConnectionValue, endpointsOf, type Provider } from "../../src/providers/provider.js";
import {
  API_CALLS,
  COMPANIES,
  CREDENTIALS,
  DOCUMENTED_NAMES,
  FAMILIES,
  QUERY_CREDENTIALS,
  SELF_HOSTED,
  WITHOUT_OAUTH2,
} from "./catalog-facts.js";

const folder = new URL("../../src/providers/catalog/", import.meta.url);
const files = readdirSync(folder).sort();

function load(file: string): Provider {
  const parsed = parseProvider(readFileSync(new URL(file, folder), "utf8"), file, { allowLoopback: false });
  if ("provider" in parsed) return parsed.provider;
  throw new Error(JSON.stringify(parsed.problems));
}

const providers = files.map(load);
const { catalog } = loadProviders({ paths: [], allowLoopback: false });
const each = providers.map((provider) => [provider.name, provider] as const);

/** A text for each value of the provider's connections. */
function textsFor({ connectionValues }: Provider): Readonly<Record<string, string>> {
  const textOf = ({ name, choices, hosts }: ConnectionValue) =>
    choices[0]?.value ?? hosts[0]?.replace("*.", "acme.") ?? (name === "host" ? "shop.example.org" : "acme");
  return Object.fromEntries(connectionValues.map((value) => [value.name, textOf(value)]));
}

/** Origins of the provider; of a template one with a value in place of each parameter. */
function originsOf(provider: Provider): readonly string[] {
  const texts = textsFor(provider);
  return provider.origins.map((rule) =>
    rule.kind === "exact" ? rule.origin : rule.template.replace(/\{([^}]*)\}/g, (_, name: string) => texts[name] ?? ""),
  );
}

function addressesOf(provider: Provider): readonly string[] {
  return [...endpointsOf(provider), ...(provider.oauth2?.issuer ?? "").split(" ").filter(Boolean)];
}

/** The two labels that are registered at a registry; three under `co.uk` and its like. */
function registrableDomain(url: string): string {
  const labels = (/^https:\/\/([^/:]+)/.exec(url)?.[1] ?? "").split(".");
  const isUnderSecondLevel = /^(?:co|com|org|net)$/.test(labels.at(-2) ?? "") && (labels.at(-1) ?? "").length === 2;
  return labels.slice(isUnderSecondLevel ? -3 : -2).join(".");
}

/** Hosts that a template can make; what may be any label stays in braces. */
function hostsOf(template: string, { connectionValues }: Provider): readonly string[] {
  return connectionValues.reduce<readonly string[]>(
    (hosts, { name, choices, hosts: bounds }) => {
      const parts = [...choices.map(({ value }) => value), ...bounds.map((bound) => bound.replace("*", "{any}"))];
      return parts.length === 0 ? hosts : hosts.flatMap((host) => parts.map((part) => host.replace(`{${name}}`, part)));
    },
    [template.replace("https://", "")],
  );
}

function fixedLabelsOf(host: string): number {
  const labels = host.split(".");
  return labels.length - 1 - labels.findLastIndex((label) => label.includes("{"));
}

/** Keys and signatures of a provider that has OAuth 2.0 as well are definitions of their own: ways into one account. */
const isKeyOf = (name: string, other: string) => name === `${other}key` || name === `${other}oauth1`;
const isFamily = (name: string, other: string) =>
  isKeyOf(name, other) ||
  isKeyOf(other, name) ||
  FAMILIES.some(({ names }) => names.includes(name) && names.includes(other));
const servers = FAMILIES.flatMap(({ isOneServer, names }) => (isOneServer ? [names] : []));

describe("the shipped catalogue", () => {
  it("has at least 400 providers, 260 with a code flow and 100 of other kinds", () => {
    const withCode = providers.filter(({ oauth2 }) => oauth2?.authorizationEndpoint).length;
    expect(providers.length).toBeGreaterThanOrEqual(400);
    expect(withCode).toBeGreaterThanOrEqual(260);
    expect(providers.filter(({ kind }) => kind !== "oauth2").length).toBeGreaterThanOrEqual(100);
  });

  it("has no name or alias twice, and the names of the original service", () => {
    const names = providers.flatMap(({ name, aliases }) => [name, ...aliases]);
    expect(names.filter((name, at) => names.indexOf(name) !== at)).toEqual([]);
    expect(DOCUMENTED_NAMES.filter((name) => catalog.find(name) === undefined)).toEqual([]);
  });

  it("holds only definitions, each in the file of its name", () => {
    expect(files).toEqual(providers.map(({ name }) => `${name}.json`));
  });

  it.each(each)("%s is complete", (name, provider) => {
    for (const page of [provider.documentationUri, ...provider.sources])
      expect(page).toMatch(/^https:\/\/[a-z0-9.-]+\.[a-z]+\/?/);
    expect(provider.sources, "name the pages that describe authorization and tokens").not.toEqual([]);
    expect(provider.displayName).not.toBe(name);
    expect(provider.notes).toMatch(/\.$/);
    expect(provider.allowPrivateNetwork).toBe(false);
    expect(provider.urlPlaceholders.size).toBe(0);
  });

  it.each(each.filter(([, { kind }]) => kind === "oauth2"))(
    "%s has its token in the place that is known",
    (name, provider) => {
      const [header, scheme] = CREDENTIALS[name] ?? ["authorization", "Bearer"];
      const parameter = QUERY_CREDENTIALS[name];
      expect(provider.credential).toMatchObject(
        parameter === undefined ? { kind: "header", name: header, scheme } : { kind: "query", parameter },
      );
    },
  );

  it.each(each.filter(([, { kind }]) => kind === "oauth2"))(
    "%s says where to authorize and to get tokens",
    (name, { oauth2 }) => {
      expect(oauth2?.authorizationEndpoint === undefined).toBe(WITHOUT_OAUTH2.has(name));
      expect(oauth2?.tokenEndpoint === undefined).toBe(WITHOUT_OAUTH2.has(name));
      expect(oauth2?.nonExpiringAccessTokens === true && oauth2.refreshTokenRotation).toBe(false);
    },
  );

  it.each(each)("%s uses https everywhere, also with its parameters filled in", (_name, provider) => {
    const filled = addressesOf(provider).map((url) => fillEndpoint(url, textsFor(provider), provider.connectionValues));
    for (const url of [...originsOf(provider), ...filled]) expect(url).toMatch(/^https:\/\/[a-z0-9]/);
  });

  it.each(each)("%s reaches its own API", (name, provider) => {
    for (const url of [...originsOf(provider).map((origin) => `${origin}/`), ...(API_CALLS[name] ?? [])]) {
      const { origin, pathname, search } = new URL(url);
      const path = pathname + search.replaceAll("%27", "'");
      expect(decideEgress(url, provider)).toMatchObject({ result: "allow", origin, path });
    }
  });
});

describe("the hosts of the shipped catalogue", () => {
  it.each(each.filter(([name]) => !SELF_HOSTED.has(name)))("%s belongs to one company", (_name, provider) => {
    const templates = [
      ...provider.origins.map((rule) => (rule.kind === "exact" ? rule.origin : rule.template)),
      ...addressesOf(provider),
    ];
    const urls = templates.flatMap((template) =>
      hostsOf(template, provider).map((host) => `https://${host.replace(/\{[^}]*\}/g, "acme")}`),
    );
    const domains = [...new Set(urls.map(registrableDomain))];
    const owner =
      domains.length > 1 && COMPANIES.find((company) => domains.every((domain) => company.includes(domain)));
    expect(domains, "list the domains in COMPANIES when one company owns them all").toSatisfy(
      () => domains.length === 1 || owner !== undefined,
    );
  });

  it.each(each)("%s has no template that is wider than an account", (name, provider) => {
    for (const rule of provider.origins) {
      if (rule.kind === "exact") continue;
      if (SELF_HOSTED.has(name)) expect(rule.template).toBe("https://{host}");
      else for (const host of hostsOf(rule.template, provider)) expect(fixedLabelsOf(host)).toBeGreaterThanOrEqual(2);
    }
  });

  it("lets no provider's token reach another account's host (U41)", () => {
    const reached = providers.flatMap((provider) =>
      providers
        .filter(
          (other) => other !== provider && !isFamily(provider.name, other.name) && !SELF_HOSTED.has(provider.name),
        )
        .flatMap(originsOf)
        .filter((origin) => decideEgress(`${origin}/`, provider).result === "allow")
        .map((origin) => `${provider.name} reaches ${origin}`),
    );
    expect(reached).toEqual([]);
  });

  it.each([...SELF_HOSTED])("lets a token of %s reach the host of its connection only", (name) => {
    const provider = catalog.find(name);
    const decision = provider && decideEgress("https://api.github.com/user", provider);
    if (decision?.result !== "allow") throw new Error(`${name} has no {host}`);
    expect(decideBoundOrigin(decision, { host: "shop.example.org" }).result).toBe("deny");
    expect(decideBoundOrigin(decision, {}).result).toBe("deny");
  });

  it("leaves no part of the token endpoint's host to users where a client belongs to one tenant", () => {
    const fixed = providers.filter(({ oauth2, connectionValues }) =>
      connectionValues.some(
        ({ name, isHost, source }) =>
          isHost && source.kind === "client" && oauth2?.tokenEndpoint?.includes(`{${name}}`),
      ),
    );
    expect(fixed.map(({ name }) => name).join(" ")).toBe("auth0 cognito kintone namely okta servicenow snowflake");
    for (const { oauth2, connectionValues } of fixed) {
      const named = connectionValues.filter(({ name }) => oauth2?.tokenEndpoint?.includes(`{${name}}`));
      expect(named.map(({ source, isOptional }) => [source.kind, isOptional])).toEqual(
        named.map(() => ["client", false]),
      );
    }
  });

  it("names only providers that exist", () => {
    const families = FAMILIES.flatMap(({ names }) => names);
    const credentials = [...Object.keys(CREDENTIALS), ...Object.keys(QUERY_CREDENTIALS)];
    for (const name of [...families, ...SELF_HOSTED, ...WITHOUT_OAUTH2, ...credentials, ...Object.keys(API_CALLS)]) {
      expect(catalog.find(name)?.name).toBe(name);
    }
  });
});

describe("the shipped definitions with OAuth 1.0a", () => {
  it.each(each.filter(([, { kind }]) => kind === "oauth1"))(
    "%s says where to agree, or asks for a token",
    (_name, provider) => {
      const { oauth1, connectionValues } = provider;
      const secrets = connectionValues.flatMap(({ name, isSecret }) => (isSecret ? [name] : []));
      const isEntered = oauth1?.authorizationEndpoint === undefined;
      expect(endpointsOf(provider).length).toBe(isEntered ? 0 : 3);
      expect(secrets.sort()).toEqual([...(isEntered ? ["client_secret"] : []), "oauth_token", "oauth_token_secret"]);
    },
  );

  it("are signed as each provider asks for", () => {
    const methods = providers.flatMap(({ name, oauth1 }) => (oauth1 ? [`${name} ${oauth1.signatureMethod}`] : []));
    expect(methods.length).toBeGreaterThanOrEqual(13);
    expect(methods.filter((each) => !each.endsWith("HMAC-SHA1"))).toEqual([
      "discogs PLAINTEXT",
      "magento HMAC-SHA256",
      "netsuiteoauth1 HMAC-SHA256",
    ]);
  });
});

describe("the habits in the shipped catalogue", () => {
  it.each(servers.map((names) => [names.join(", "), names] as const))("are the same for %s", (_names, family) => {
    const ofEach = { defaultScopes: undefined, scopeDescriptions: undefined };
    const habits = family.map((name) => ({ ...catalog.find(name)?.oauth2, ...ofEach }));
    for (const habit of habits) expect(habit).toEqual(habits[0]);
    expect(habits[0]?.tokenEndpoint).toBeDefined();
  });

  it("say what each default scope means where they say it of any, a whole address the same everywhere", () => {
    const words = new Map<string, string>();
    for (const { name, oauth2 } of providers) {
      const { defaultScopes = [], scopeDescriptions = {} } = oauth2 ?? {};
      const isDescribed = Object.keys(scopeDescriptions).length > 0;
      const bare = isDescribed ? defaultScopes.filter((scope) => !Object.hasOwn(scopeDescriptions, scope)) : [];
      expect([name, bare]).toEqual([name, []]);
      for (const [scope, description] of Object.entries(scopeDescriptions)) {
        if (!scope.startsWith("https://")) continue;
        expect([scope, words.get(scope) ?? description]).toEqual([scope, description]);
        words.set(scope, description);
      }
    }
    expect(words.size).toBeGreaterThan(20);
  });

  it("ask Google and Microsoft for a refresh token", () => {
    expect(catalog.find("googledrive")?.oauth2?.authorizationParameters).toEqual({
      access_type: "offline",
      prompt: "consent",
    });
    expect(catalog.find("msteams")?.oauth2?.defaultScopes).toContain("offline_access");
  });

  it.each([
    ["github", "user-agent"],
    ["discord", "user-agent"],
    ["reddit", "user-agent"],
    ["notion", "notion-version"],
    ["xero", "accept"],
  ])("send %s the header %s", (name, header) => {
    expect(catalog.find(name)?.defaultHeaders.map(([key]) => key)).toContain(header);
  });

  it("call the client id of TikTok client_key", () => {
    expect(catalog.find("tiktok")?.oauth2?.clientIdParameter).toBe("client_key");
  });

  it("send JSON where token requests are documented so", () => {
    const senders = providers.filter(({ oauth2 }) => oauth2?.tokenRequestFormat === "json").map(({ name }) => name);
    expect(senders.join(" ")).toBe(
      "atlassian calcom clover cloversandbox dropboxsign feishu freshbooks gusto gustodemo kommo lark marketingcloud notion pax8 podium raindrop square squaresandbox teamwork trakt usps vanta zendesk",
    );
  });

  it.each([
    ["dropboxsign", "https://app.hellosign.com/oauth/token?refresh"],
    ["figma", "https://api.figma.com/v1/oauth/refresh"],
    ["digitalocean", undefined],
  ])("refresh the tokens of %s at %s", (name, url) => {
    expect(catalog.find(name)?.oauth2?.refreshEndpoint).toBe(url);
  });

  it.each([
    ["basecamp", {}, { type: "web_server", grant_type: "" }, { type: "refresh", grant_type: "" }],
    ["whoop", {}, {}, { scope: "offline" }],
    ["shopify", {}, { expiring: "1" }, {}],
    ["withings", { action: "requesttoken" }, {}, {}],
  ])("give token requests of %s their parameters", (name, tokenParameters, codeParameters, refreshParameters) => {
    expect(catalog.find(name)?.oauth2).toMatchObject({ tokenParameters, codeParameters, refreshParameters });
  });

  it("look for the token response of Withings in body", () => {
    expect(catalog.find("withings")?.oauth2?.tokenResponseMember).toBe("body");
  });

  it.each([
    ["github", undefined, ["bad_refresh_token"]],
    ["hubspot", "status", ["BAD_REFRESH_TOKEN"]],
    ["msgraphmail", undefined, ["interaction_required", "consent_required", "login_required"]],
    ["slack", undefined, ["invalid_refresh_token", "token_expired", "token_revoked"]],
    ["twitch", "message", ["Invalid refresh token"]],
    ["zohocrm", undefined, ["invalid_code"]],
    ["okta", undefined, []],
  ])("know in which words a refresh token of %s has ended", (name, tokenErrorMember, codes) => {
    expect(catalog.find(name)?.oauth2).toMatchObject({ tokenErrorMember });
    expect([...(catalog.find(name)?.oauth2?.refreshEndedErrors ?? [])]).toEqual(codes);
  });

  it.each([
    ["youtube", "https://accounts.google.com"],
    ["quickbooks", "https://oauth.platform.intuit.com/op/v1"],
    ["msteams", undefined],
  ])("name the issuer of %s as %s", (name, issuer) => {
    expect(catalog.find(name)?.oauth2?.issuer).toBe(issuer);
  });
});
