import { randomUUID } from "node:crypto";
import { expect, it, onTestFinished } from "vitest";
import { type PostgresLocation, parseDatabaseLocation } from "../../src/config/database-location.js";
import { disconnect } from "../../src/oauth/disconnect.js";
import { openPostgresStore } from "../../src/store/postgres.js";
import { sealerForTest } from "../oauth/sealer-for-test.js";
import { providerFrom } from "../providers/provider-for-test.js";
import { applicationForTest, connectionForTest, NOW } from "../store/store-for-test.js";
import { createTestDatabase, POSTGRES_URL } from "../support/postgres.js";
import { startPostgresProxy } from "../support/postgres-proxy.js";
import { putOAuthClient } from "../support/put-oauth-client.js";

// When the answer to the COMMIT of a disconnect was lost, the tokens were gone from the store and nobody revoked them:
// the user was told to try again, and then that there was no connection.

const sealer = sealerForTest();
const provider = providerFrom({
  name: "watched",
  apiOrigins: ["https://api.example"],
  oauth2: {
    authorizationEndpoint: "https://as.example/authorize",
    tokenEndpoint: "https://as.example/token",
    revocationEndpoint: "https://as.example/revoke",
  },
});
const catalog = { find: () => provider, list: async () => [provider] };

/** A store whose connection to PostgreSQL can be cut, with a connection of a user in it. */
async function openConnected() {
  const database = await createTestDatabase();
  onTestFinished(() => database.remove());
  const proxy = await startPostgresProxy(database.url);
  onTestFinished(() => proxy.close());
  const location = parseDatabaseLocation(proxy.url) as PostgresLocation;
  const store = await openPostgresStore(location, { maxConnections: 2, timeoutMs: 10_000 });
  onTestFinished(() => store.close());
  const application = applicationForTest(sealer);
  await store.applications.create(application);
  const client = { applicationId: application.id, providerName: provider.name };
  const rest = { clientId: "c", clientSecret: undefined, scope: "", originParameters: {}, updatedAt: NOW };
  await putOAuthClient(store.oauthClients, { id: randomUUID(), ...client, ...rest });
  const key = { ...client, userId: "u" };
  await store.connections.put(connectionForTest(sealer, key, { refresh_token: "the-refresh-token" }), NOW);
  return { store, proxy, key };
}

it.skipIf(POSTGRES_URL === undefined).each([
  ["was done", "after", undefined],
  ["was not done", "before", "REVOKED"],
] as const)("a disconnect whose COMMIT was not confirmed revokes the tokens when it %s", async (_, when, again) => {
  const { store, proxy, key } = await openConnected();
  const sent: (string | null)[] = [];
  const options = {
    ...{ catalog, sealer, connections: store.connections, oauthClients: store.oauthClients },
    send: async (_target: unknown, { body }: { readonly body: unknown }) => {
      sent.push(new URLSearchParams(String(body)).get("token"));
      return { statusCode: 200, body: new Uint8Array(), retryAfter: "" };
    },
    now: () => NOW,
    onEvent: () => {},
    onFault: (_what: string, error: unknown) => expect.fail(String(error)),
  };
  proxy.cut(when, "COMMIT");
  await expect(disconnect(options, key)).rejects.toMatchObject({ reason: "STORE_UNAVAILABLE" });
  expect(sent).toEqual(["the-refresh-token"]);
  expect(await disconnect(options, key)).toBe(again);
  expect(await store.connections.find(key)).toBeUndefined();
});
