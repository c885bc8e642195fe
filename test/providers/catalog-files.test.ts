import { readdirSync, readFileSync } from "node:fs";
import { describe, expect, it } from "vitest";
import { createCatalog } from "../../src/providers/catalog.js";
import { parseProvider } from "../../src/providers/definition.js";
import { decideEgress } from "../../src/providers/egress.js";
import type { Provider } from "../../src/providers/provider.js";

const folder = new URL("../../src/providers/catalog/", import.meta.url);
const files = readdirSync(folder).sort();

function load(file: string): Provider {
  const parsed = parseProvider(readFileSync(new URL(file, folder), "utf8"), file, { allowLoopback: false });
  if ("provider" in parsed) return parsed.provider;
  throw new Error(JSON.stringify(parsed.problems));
}

const providers = files.map(load);

/** Where API calls of real clients go; the first is the main one. */
const endpoints: Readonly<Record<string, readonly string[]>> = {
  github: ["https://api.github.com/user", "https://uploads.github.com/repos/o/r/releases/1/assets?name=a.zip"],
  googleidentity: [
    "https://openidconnect.googleapis.com/v1/userinfo",
    "https://www.googleapis.com/oauth2/v3/userinfo",
    "https://people.googleapis.com/v1/people/me?personFields=names",
  ],
  googlecalendar: ["https://www.googleapis.com/calendar/v3/calendars/primary/events"],
  googlemail: [
    "https://gmail.googleapis.com/gmail/v1/users/me/messages",
    "https://gmail.googleapis.com/upload/gmail/v1/users/me/messages/send?uploadType=multipart",
    "https://www.googleapis.com/gmail/v1/users/me/profile",
  ],
  youtube: [
    "https://www.googleapis.com/youtube/v3/channels?part=id&mine=true",
    "https://www.googleapis.com/upload/youtube/v3/videos?uploadType=resumable&part=snippet",
    "https://youtubeanalytics.googleapis.com/v2/reports?ids=channel==MINE",
  ],
  slack: ["https://slack.com/api/chat.postMessage", "https://files.slack.com/upload/v1/ABC"],
  hubspot: ["https://api.hubapi.com/crm/v3/objects/contacts"],
  linkedin: ["https://api.linkedin.com/v2/userinfo", "https://www.linkedin.com/dms-uploads/sp/x/uploaded-image/0?ca=v"],
  spotify: ["https://api.spotify.com/v1/me"],
  facebook: [
    "https://graph.facebook.com/v26.0/me/accounts",
    "https://graph-video.facebook.com/v26.0/1/videos",
    "https://rupload.facebook.com/video-upload/v26.0/1",
  ],
  twitteroauth2: ["https://api.x.com/2/users/me", "https://api.twitter.com/2/users/me"],
  quickbooks: [
    "https://quickbooks.api.intuit.com/v3/company/1/query?query=select%20*%20from%20Invoice",
    "https://sandbox-quickbooks.api.intuit.com/v3/company/1/companyinfo/1",
    "https://sandbox.api.intuit.com/quickbooks/v4/payments/charges",
    "https://accounts.platform.intuit.com/v1/openid_connect/userinfo",
  ],
  zoom: ["https://api.zoom.us/v2/users/me", "https://fileapi.zoom.us/v2/chat/users/me/files"],
};

/** Providers that share an account share an authorization server. */
const family = ({ oauth2 }: Provider) => oauth2?.tokenEndpoint;

describe("the shipped catalogue", () => {
  it("has a catalogue entry for every known endpoint and no name twice", () => {
    expect(providers.map(({ name }) => name).sort()).toEqual(Object.keys(endpoints).sort());
    expect(createCatalog(providers).list()).toHaveLength(files.length);
  });

  it.each(providers.map((provider, at) => [files[at], provider] as const))("%s is complete", (file, provider) => {
    expect(file).toBe(`${provider.name}.json`);
    expect(provider.documentationUri).toMatch(/^https:\/\//);
    expect(provider.displayName).not.toBe(provider.name);
    expect(provider.notes).not.toBe("");
    expect(provider.allowPrivateNetwork).toBe(false);
    expect(provider.urlPlaceholders.size).toBe(0);
    expect(provider.origins.every(({ kind }) => kind === "exact")).toBe(true);
    expect([...provider.exactOrigins].every((origin) => origin.startsWith("https://"))).toBe(true);
    expect(provider.credential).toEqual({ kind: "header", name: "authorization", scheme: "Bearer" });
    expect(provider.oauth2?.authorizationEndpoint).toMatch(/^https:\/\//);
    expect(provider.oauth2?.tokenEndpoint).toMatch(/^https:\/\//);
  });

  it.each(providers.map((provider) => [provider.name, provider] as const))(
    "%s reaches its own API",
    (name, provider) => {
      for (const url of endpoints[name] ?? []) {
        const { origin, pathname, search } = new URL(url);
        expect(decideEgress(url, provider)).toMatchObject({ result: "allow", origin, path: pathname + search });
      }
    },
  );

  it("lets no provider's token reach another account's host (U41)", () => {
    for (const provider of providers) {
      for (const other of providers) {
        if (family(provider) === family(other)) continue;
        for (const origin of other.exactOrigins) expect(decideEgress(`${origin}/`, provider).result).toBe("deny");
      }
    }
  });

  it("shares one shape between the Google providers", () => {
    const google = providers.filter(({ oauth2 }) => oauth2?.tokenEndpoint === "https://oauth2.googleapis.com/token");
    expect(google.map(({ name }) => name)).toEqual(["googlecalendar", "googleidentity", "googlemail", "youtube"]);
    for (const { oauth2 } of google) expect(oauth2).toEqual(google[0]?.oauth2);
    expect(google[0]?.oauth2?.authorizationParameters).toEqual({ access_type: "offline", prompt: "consent" });
  });

  it("sends a User-Agent to GitHub", () => {
    expect(createCatalog(providers).find("github")?.defaultHeaders).toContainEqual([
      "user-agent",
      "provider-call-relay",
    ]);
  });
});
