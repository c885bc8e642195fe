import { timestampFromMs } from "@bufbuild/protobuf/wkt";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { openOAuthClient } from "../../src/oauth/oauth-client.js";
import { type Harness, startHarness, type TestApplication } from "../support/harness.js";
import { type AdminClients, createAdminClients } from "./admin-bed.js";
import { failure } from "./failure.js";

let harness: Harness;
let application: TestApplication;
beforeAll(async () => {
  harness = await startHarness({
    providers: [
      {
        name: "shop",
        aliases: ["store"],
        apiOrigins: ["https://{shop}.example.com"],
        oauth2: { tokenEndpoint: "https://{shop}.example.com/token" },
      },
      { name: "keys", apiOrigins: ["https://keys.example.com"] },
    ],
  });
  application = await harness.createApplication();
});
afterAll(() => harness.close());

describe.each(["connect", "grpc"] as const)("OAuthClientService over %s", (protocol) => {
  let clients: AdminClients["oauthClients"];
  let key: { readonly publicKey: string; readonly providerName: string };
  beforeAll(() => {
    clients = createAdminClients(harness, protocol).oauthClients;
    key = { publicKey: application.publicKey, providerName: protocol === "grpc" ? "sandbox" : "shop" };
  });

  /** The secret that is stored; undefined for none. */
  async function storedSecret(): Promise<string | undefined> {
    const stored = await harness.store.oauthClients.find(application.id, key.providerName);
    return stored && openOAuthClient(harness.sealer, stored).clientSecret?.reveal();
  }

  it("stores a client whose secret no answer has, changes what is named, and deletes it", async () => {
    const made = await clients.createOAuthClient({ oauthClient: { ...key, clientId: "id", clientSecret: "CANARY_1" } });
    expect(made).toMatchObject({ ...key, clientId: "id", clientSecret: "", hasClientSecret: true, scope: "" });
    expect(await clients.getOAuthClient(key)).toEqual(made);
    expect(await storedSecret()).toBe("CANARY_1");
    const again = clients.createOAuthClient({ oauthClient: { ...key, clientId: "other" } });
    expect(await failure(again)).toMatchObject({ code: "AlreadyExists" });
    const scoped = await clients.updateOAuthClient({ oauthClient: { ...key, scope: "a b" } });
    expect(scoped).toMatchObject({ clientId: "id", hasClientSecret: true, scope: "a b" });
    expect(await storedSecret()).toBe("CANARY_1");
    const updateMask = { paths: ["client_secret"] };
    expect(await clients.updateOAuthClient({ oauthClient: key, updateMask })).toMatchObject({ hasClientSecret: false });
    expect(await storedSecret()).toBeUndefined();
    const stale = clients.updateOAuthClient({ oauthClient: { ...key, scope: "c", etag: made.etag } });
    expect(await failure(stale)).toMatchObject({ code: "Aborted" });
    expect(await failure(clients.deleteOAuthClient({ ...key, etag: made.etag }))).toMatchObject({ code: "Aborted" });
    await clients.deleteOAuthClient({ ...key, etag: (await clients.getOAuthClient(key)).etag });
    const gone = clients.updateOAuthClient({
      oauthClient: { ...key, clientId: "id", etag: made.etag },
      updateMask: { paths: ["client_id"] },
      allowMissing: true,
    });
    expect(await failure(gone)).toMatchObject({ code: "Aborted" });
    for (const told of await Promise.all([clients.getOAuthClient(key), clients.deleteOAuthClient(key)].map(failure)))
      expect(told).toMatchObject({ code: "NotFound" });
  });

  it("says since when the provider refuses a client, until it is changed", async () => {
    await clients.createOAuthClient({ oauthClient: { ...key, clientId: "id" } });
    const stored = await harness.store.oauthClients.find(application.id, key.providerName);
    if (stored === undefined) throw new Error("the client is not stored");
    await harness.store.oauthClients.noteRefused(stored, 1_800_000_000_000);
    const refusedTime = timestampFromMs(1_800_000_000_000);
    expect(await clients.getOAuthClient(key)).toMatchObject({ refusedTime });
    expect(await clients.listOAuthClients({ publicKey: application.publicKey })).toMatchObject({
      oauthClients: [{ providerName: key.providerName, refusedTime }],
    });
    const changed = await clients.updateOAuthClient({ oauthClient: { ...key, clientSecret: "CANARY_3" } });
    expect(changed.refusedTime).toBeUndefined();
    await clients.deleteOAuthClient(key);
  });

  it("makes one that is missing only when asked to", async () => {
    const oauthClient = { ...key, clientId: "id" };
    expect(await failure(clients.updateOAuthClient({ oauthClient }))).toMatchObject({ code: "NotFound" });
    const incomplete = clients.updateOAuthClient({ oauthClient: { ...key, scope: "x" }, allowMissing: true });
    expect(await failure(incomplete)).toMatchObject({ field: "oauth_client.client_id" });
    expect(await clients.updateOAuthClient({ oauthClient, allowMissing: true })).toMatchObject({ clientId: "id" });
    await clients.deleteOAuthClient(key);
  });

  it("makes one of many that are made at once", async () => {
    const makes = Array.from({ length: 5 }, (_, at) =>
      failure(clients.createOAuthClient({ oauthClient: { ...key, clientId: `id-${at}` } })),
    );
    const codes = (await Promise.all(makes)).map(({ code }) => code);
    expect(codes.filter((code) => code === "AlreadyExists")).toHaveLength(4);
    await clients.deleteOAuthClient(key);
  });

  it.each([
    [{}, "oauth_client.client_id"],
    [{ clientId: "é" }, "oauth_client.client_id"],
    [{ clientId: "id", clientSecret: "CANARY_é" }, "oauth_client.client_secret"],
    [{ clientId: "id", scope: "CANARY_\n" }, "oauth_client.scope"],
    [{ clientId: "id", originParameters: { nothing: "x" } }, "oauth_client.origin_parameters.nothing"],
    [{ clientId: "id", publicKey: "" }, "oauth_client.public_key"],
    [{ clientId: "id", providerName: "" }, "oauth_client.provider_name"],
    [{ clientId: "id", providerName: "keys" }, "oauth_client.provider_name"],
    [{ clientId: "id", providerName: "woocommerce" }, "oauth_client.provider_name"],
  ])("refuses %o, names the field and quotes nothing", async (fields, field) => {
    const {
      code,
      message,
      field: told,
    } = await failure(clients.createOAuthClient({ oauthClient: { ...key, ...fields } }));
    expect([code, told]).toEqual(["InvalidArgument", field]);
    expect(message).not.toContain("CANARY");
  });

  it("says what to do for a provider without a token endpoint, whose client would be of no use", async () => {
    const oauthClient = { ...key, providerName: "keys", clientId: "id" };
    const updated = await failure(clients.updateOAuthClient({ oauthClient, allowMissing: true }));
    expect(updated.message).toMatch(/^oauth_client.provider_name is keys, which has no .*'relay connection put'.*\.$/);
  });

  it.each([{ publicKey: "nobody's" }, { providerName: "nothing" }])("knows nothing of %o", async (patch) => {
    const oauthClient = { ...key, clientId: "id", ...patch };
    expect(await failure(clients.createOAuthClient({ oauthClient }))).toMatchObject({ code: "NotFound" });
  });
});

describe("ListOAuthClients", () => {
  it("gives each client once, by the providers' names", async () => {
    const { oauthClients } = createAdminClients(harness);
    const { publicKey } = await harness.createApplication();
    const names = ["slack", "github", "shop", "zoom"];
    for (const providerName of names) {
      const originParameters = providerName === "shop" ? { shop: "ACME" } : {};
      await oauthClients.createOAuthClient({
        oauthClient: { publicKey, providerName, clientId: "id", originParameters },
      });
    }
    const first = await oauthClients.listOAuthClients({ publicKey, pageSize: 3 });
    const second = await oauthClients.listOAuthClients({ publicKey, pageSize: 3, pageToken: first.nextPageToken });
    expect(second.nextPageToken).toBe("");
    const all = [...first.oauthClients, ...second.oauthClients];
    expect(all.map(({ providerName }) => providerName)).toEqual(names.toSorted());
    expect(all[1]?.originParameters).toEqual({ shop: "acme" });
    expect((await oauthClients.getOAuthClient({ publicKey, providerName: "store" })).providerName).toBe("shop");
    for (const providerName of ["a\0b", "A B", "x".repeat(64)]) {
      const get = oauthClients.getOAuthClient({ publicKey, providerName });
      expect(await failure(get)).toMatchObject({ code: "InvalidArgument", field: "provider_name" });
    }
  });
});
