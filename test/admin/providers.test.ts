import { readdirSync } from "node:fs";
import { join } from "node:path";
import { toJson } from "@bufbuild/protobuf";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { ProviderSchema } from "../../gen/relay/admin/v1/provider_pb.js";
import { ProviderEntry_Source as Source } from "../../gen/relay/admin/v1/provider_service_pb.js";
import { ADMIN_TOKENS, type Harness, startHarness } from "../support/harness.js";
import { createAdminClients } from "./admin-bed.js";
import { failure } from "./failure.js";

let harness: Harness;
beforeAll(async () => {
  harness = await startHarness({
    providers: [
      { name: "github", aliases: ["hub"], apiOrigins: ["https://git.example.com"] },
      {
        name: "keyed",
        apiOrigins: ["https://keyed.example.com"],
        defaultHeaders: { "X-Subscription": "CANARY_1", "user-agent": "acme", "acme-version": "2" },
        oauth2: {
          tokenEndpoint: "https://keyed.example.com/token",
          tokenParameters: { audience: "api", software_token: "CANARY_2" },
        },
      },
    ],
  });
});
afterAll(() => harness.close());

describe.each(["connect", "grpc"] as const)("ProviderService over %s", (protocol) => {
  it("shows a definition by name or alias, and where it comes from", async () => {
    const { providers } = createAdminClients(harness, protocol);
    const own = await providers.getProvider({ providerName: "hub" });
    expect(own).toMatchObject({ source: Source.FILE, file: join(harness.folder, "provider-1.json") });
    expect(own.provider && toJson(ProviderSchema, own.provider)).toMatchObject({
      name: "github",
      apiOrigins: ["https://git.example.com"],
      credential: { header: "authorization", scheme: "Bearer" },
    });
    const shipped = await providers.getProvider({ providerName: "slack" });
    expect(shipped).toMatchObject({ source: Source.CATALOG, file: "" });
    expect(shipped.provider?.oauth2?.tokenEndpoint).toMatch(/^https:/);
    expect(await failure(providers.getProvider({ providerName: "nothing" }))).toMatchObject({ code: "NotFound" });
    expect(await failure(providers.getProvider({}))).toMatchObject({ field: "provider_name" });
  });

  it("lists each provider once, by name", async () => {
    const { providers } = createAdminClients(harness, protocol);
    const names: string[] = [];
    let pageToken = "";
    do {
      const page = await providers.listProviders({ pageSize: 50, pageToken });
      names.push(...page.providers.map(({ provider }) => provider?.name ?? ""));
      pageToken = page.nextPageToken;
    } while (pageToken !== "");
    const shipped = readdirSync("src/providers/catalog").map((file) => file.replace(".json", ""));
    expect(names).toEqual([...shipped, "keyed", "sandbox"].sort());
  });

  it("shows what may be a key in a definition to operators alone", async () => {
    const shownTo = async (token: string) => {
      const { providers } = createAdminClients(harness, protocol, token);
      const { provider } = await providers.getProvider({ providerName: "keyed" });
      const listed = (await providers.listProviders({ pageSize: 500 })).providers;
      expect(listed.find((entry) => entry.provider?.name === "keyed")?.provider).toEqual(provider);
      return [provider?.defaultHeaders, provider?.oauth2?.tokenParameters];
    };
    const harmless = { "user-agent": "acme", "acme-version": "2" };
    expect(await shownTo(ADMIN_TOKENS.operator)).toEqual([
      { ...harmless, "x-subscription": "CANARY_1" },
      { audience: "api", software_token: "CANARY_2" },
    ]);
    expect(await shownTo(ADMIN_TOKENS.readOnly)).toEqual([
      { ...harmless, "x-subscription": "***" },
      { audience: "api", software_token: "***" },
    ]);
  });

  it("explains a call without them to whoever only reads", async () => {
    const application = await harness.createApplication();
    const { publicKey } = application;
    await harness.connect(application, "ada", { providerName: "keyed" });
    const explained = async (token: string, headers: Record<string, string> = {}) => {
      const { calls } = createAdminClients(harness, protocol, token);
      const call = { url: "https://keyed.example.com/me", method: "GET", headers };
      const { request } = await calls.explainCall({
        call: { providerName: "keyed", publicKey, userId: "ada", call },
      });
      return Object.fromEntries((request?.headers ?? []).map(({ name, value }) => [name.toLowerCase(), value]));
    };
    expect(await explained(ADMIN_TOKENS.operator)).toMatchObject({ "x-subscription": "CANARY_1" });
    expect(await explained(ADMIN_TOKENS.readOnly)).toMatchObject({ "x-subscription": "***", "user-agent": "acme" });
    const own = await explained(ADMIN_TOKENS.readOnly, { "x-subscription": "mine" });
    expect(own).toMatchObject({ "x-subscription": "mine" });
  });
});
