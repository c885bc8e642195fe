import { randomUUID } from "node:crypto";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { createTargetFor, findAuthorizationServer } from "../../src/oauth/authorization-server.js";
import { disconnect } from "../../src/oauth/disconnect.js";
import { sealClientSecret } from "../../src/oauth/oauth-client.js";
import type { Provider } from "../../src/providers/provider.js";
import { Secret } from "../../src/sealing/seal.js";
import type { SqliteStore } from "../../src/store/sqlite.js";
import { providerFrom } from "../providers/provider-for-test.js";
import {
  applicationForTest,
  connectionForTest,
  createStoreFolder,
  NOW,
  type StoreFolder,
} from "../store/store-for-test.js";
import { putOAuthClient } from "../support/put-oauth-client.js";
import { sealerForTest } from "./sealer-for-test.js";

const sealer = sealerForTest();
const at = (origin: string) => ({
  authorizationEndpoint: `${origin}/authorize`,
  tokenEndpoint: `${origin}/token`,
  revocationEndpoint: `${origin}/revoke`,
});
const HOST = providerFrom({ name: "hosted", apiOrigins: ["https://{host}"], oauth2: at("https://{host}") });
const SHOP = providerFrom({
  name: "shop",
  apiOrigins: ["https://{shop}.shop.example"],
  oauth2: at("https://{shop}.shop.example"),
});
/** Only where tokens are revoked is the host a user's. */
const SPLIT = providerFrom({
  name: "split",
  apiOrigins: ["https://{host}"],
  oauth2: { ...at("https://as.example"), revocationEndpoint: "https://{host}/revoke" },
});

let folder: StoreFolder;
let store: SqliteStore;
let applicationId: string;

beforeEach(async () => {
  folder = createStoreFolder();
  store = folder.open();
  const application = applicationForTest(sealer);
  await store.applications.create(application);
  applicationId = application.id;
});

afterEach(() => folder.remove());

const PROVIDERS = [HOST, SHOP, SPLIT];
const catalog = { find: (name: string) => PROVIDERS.find((each) => each.name === name), list: async () => PROVIDERS };
const options = () => ({ catalog, oauthClients: store.oauthClients, sealer });

async function putClient({ name: providerName }: Provider, originParameters: Record<string, string>): Promise<void> {
  const key = { applicationId, providerName };
  await putOAuthClient(store.oauthClients, {
    id: randomUUID(),
    ...key,
    clientId: "c",
    clientSecret: sealClientSecret(sealer, key, new Secret("CANARY_CLIENT_SECRET")),
    scope: "",
    originParameters,
    updatedAt: NOW,
  });
}

const connectionAt = ({ name: providerName }: Provider, originParameters: Record<string, string>) => ({
  ...connectionForTest(sealer, { applicationId, userId: "ada", providerName }, { refresh_token: "r" }),
  originParameters,
});

describe.each([
  ["a host that the operator has not named", HOST, {}, { host: "evil.example" }, undefined],
  [
    "a host of a user's, where the operator has named another",
    HOST,
    { host: "a.example" },
    { host: "evil.example" },
    undefined,
  ],
  ["a host that only revokes", SPLIT, {}, { host: "evil.example" }, undefined],
  ["another customer's host", SHOP, { shop: "acme" }, { shop: "other" }, undefined],
  ["a host that was never given", SHOP, {}, {}, undefined],
  [
    "the host that the operator has named",
    HOST,
    { host: "a.example" },
    { host: "a.example" },
    "https://a.example/token",
  ],
  ["the provider's own domain", SHOP, {}, { shop: "acme" }, "https://acme.shop.example/token"],
])("the client's secret and %s", (_, provider, bound, named, tokenEndpoint) => {
  const isSent = tokenEndpoint !== undefined;
  // Without the value there is no endpoint to ask; with another host there is no client for it.
  const refusal = Object.keys(named).length === 0 ? "REAUTHORIZATION_REQUIRED" : "REFRESH_UNAVAILABLE";

  it(isSent ? "go together" : "never meet when a code is redeemed", async () => {
    await putClient(provider, bound);
    const server = await findAuthorizationServer(options(), connectionAt(provider, named));
    expect("tokenEndpoint" in server ? server.tokenEndpoint : undefined).toBe(tokenEndpoint);
  });

  it(isSent ? "go together to refresh" : "never meet when a token is refreshed", async () => {
    await putClient(provider, bound);
    const connection = await store.connections.put(connectionAt(provider, named), NOW);
    const target = createTargetFor(options())(connection);
    if (isSent) expect(await target).toMatchObject({ tokenEndpoint });
    else await expect(target).rejects.toMatchObject({ reason: refusal });
  });

  it(
    isSent ? "go together to revoke" : "never meet when a token is revoked, and the connection is deleted",
    async () => {
      await putClient(provider, bound);
      const { userId, providerName } = await store.connections.put(connectionAt(provider, named), NOW);
      const sent: string[] = [];
      const revocation = await disconnect(
        {
          ...options(),
          connections: store.connections,
          send: async ({ tokenEndpoint: endpoint }) => {
            sent.push(endpoint);
            return { statusCode: 200, body: new Uint8Array(), retryAfter: "" };
          },
          now: () => NOW,
          onEvent: () => {},
          onFault: () => {},
        },
        { applicationId, userId, providerName },
      );
      expect([revocation, sent]).toEqual(
        isSent ? ["REVOKED", [tokenEndpoint.replace("token", "revoke")]] : ["FAILED", []],
      );
      expect(await store.connections.list({ applicationId, limit: 9 })).toEqual([]);
    },
  );
});
