import { readdirSync } from "node:fs";
import { join } from "node:path";
import { toJson } from "@bufbuild/protobuf";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { ProviderSchema } from "../../gen/relay/admin/v1/provider_pb.js";
import { ProviderEntry_Source as Source } from "../../gen/relay/admin/v1/provider_service_pb.js";
import { type Harness, startHarness } from "../support/harness.js";
import { createAdminClients } from "./admin-bed.js";
import { failure } from "./failure.js";

let harness: Harness;
beforeAll(async () => {
  harness = await startHarness({
    providers: [{ name: "github", aliases: ["hub"], apiOrigins: ["https://git.example.com"] }],
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
    expect(names).toEqual([...shipped, "sandbox"].sort());
  });
});
