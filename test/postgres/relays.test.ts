import { randomUUID } from "node:crypto";
import { setTimeout as delay } from "node:timers/promises";
import { request } from "undici";
import { afterAll, beforeAll, beforeEach, describe, expect, it } from "vitest";
import type { Connection, ConnectionKey } from "../../src/oauth/connection.js";
import { createCallers, type Row } from "../support/callers.js";
import { type Harness, startHarness, type TestApplication } from "../support/harness.js";
import { createTestDatabase, POSTGRES_URL, type TestDatabase } from "../support/postgres.js";
import { type PostgresServer, startPostgresServer } from "../support/postgres-server.js";
import { startTokenEndpoint, type TestTokenEndpoint } from "../support/token-endpoint.js";

const PROVIDER = "refreshed";
const EXPIRIES = 8;
const CALLERS = 12;

/** A server of this file's own, since it is stopped under the relays. */
let server: PostgresServer;
let database: TestDatabase;
let harness: Harness;
let endpoint: TestTokenEndpoint;
let application: TestApplication;
let urls: readonly string[];

beforeAll(async () => {
  if (POSTGRES_URL === undefined) return;
  server = await startPostgresServer();
  database = await createTestDatabase(server.url);
  endpoint = await startTokenEndpoint(() => harness.sandbox.origin);
  harness = await startHarness({
    env: { RELAY_DATABASE: database.url, RELAY_DATABASE_TIMEOUT_MS: "10000" },
    definitionsFor: (origin) => [
      {
        name: PROVIDER,
        apiOrigins: [origin],
        oauth2: { tokenEndpoint: endpoint.url, clientAuthentication: "client_secret_basic" },
      },
    ],
  });
  application = await harness.createApplication();
  await harness.putClient(application, PROVIDER);
  urls = [harness.url, await harness.startPeer(), await harness.startPeer()];
});

beforeEach(() => {
  if (POSTGRES_URL === undefined) return;
  endpoint.play = (_body, _response, pass) => pass();
  endpoint.received.length = 0;
});

afterAll(async () => {
  await harness?.close();
  await endpoint?.close();
  await server?.close();
});

/** A user whose access token has ended. */
async function connectUser(expiresAt: number | undefined = 1) {
  const userId = randomUUID();
  const { refresh_token: refreshToken } = harness.sandbox.issueToken();
  await harness.connect(application, userId, {
    providerName: PROVIDER,
    refreshToken,
    ...(expiresAt === undefined ? {} : { expiresAt }),
  });
  const key: ConnectionKey = { applicationId: application.id, userId, providerName: PROVIDER };
  return { userId, key, row: () => harness.store.connections.find(key) as Promise<Connection> };
}

async function call(userId: string, url: string | undefined = harness.url, protocol = "REST"): Promise<Row> {
  const caller = new Map(createCallers(url)).get(protocol);
  const call = { url: `${harness.sandbox.origin}/me`, method: "GET" };
  return (await caller?.({ providerName: PROVIDER, userId, publicKey: application.publicKey, call })) as Row;
}

const isReady = async () => (await request(`${harness.url}/readyz`)).statusCode === 200;

/** Looks again and again, without a pause that a busy machine could make too short. */
async function until(check: () => Promise<boolean>): Promise<void> {
  while (!(await check())) await delay(20);
}

const endEveryConnection = () =>
  database.query(
    "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE application_name = 'provider-call-relay'",
  );

describe.skipIf(POSTGRES_URL === undefined)("three relays on PostgreSQL", () => {
  it("refresh each token that has ended once, whoever is called by how many", async () => {
    const users = await Promise.all(Array.from({ length: EXPIRIES }, () => connectUser()));
    const calls = users.flatMap(({ userId }) =>
      Array.from({ length: CALLERS }, (_, at) => call(userId, urls[at % urls.length])),
    );
    for (const row of await Promise.all(calls)) expect(row).toMatchObject({ pincStatus: "success" });
    expect(endpoint.received).toHaveLength(EXPIRIES);
    for (const { row } of users) expect(await row()).toMatchObject({ version: 2, leaseUntil: undefined });
  });

  it("store what the provider answered when every connection ends before the commit", async () => {
    const users = await Promise.all(Array.from({ length: 5 }, () => connectUser()));
    let ended: Promise<unknown> | undefined;
    endpoint.play = async (_body, _response, pass) => {
      // No relay is in the middle of a statement then.
      await until(async () => endpoint.received.length === users.length);
      ended ??= endEveryConnection();
      await ended;
      await pass();
    };
    const rows = await Promise.all(users.map(({ userId }, at) => call(userId, urls[at % urls.length])));
    for (const row of rows) expect(row).toMatchObject({ pincStatus: "success" });
    expect(endpoint.received).toHaveLength(users.length);
    for (const { row } of users) expect(await row()).toMatchObject({ version: 2, leaseUntil: undefined });
  });

  it("store what the provider answered while the database was being restarted", async () => {
    const users = await Promise.all(Array.from({ length: 3 }, () => connectUser()));
    let restarted: Promise<void> | undefined;
    const restart = async () => {
      await until(async () => endpoint.received.length === users.length);
      await server.stop("immediate");
      // From now on the answers are on their way, and there is nothing to store them in.
      void delay(300).then(() => server.start());
    };
    endpoint.play = async (_body, _response, pass) => {
      restarted ??= restart();
      await restarted;
      await pass();
    };
    const calls = users.map(({ userId }, at) => call(userId, urls[at]));
    await Promise.allSettled(calls);
    await until(isReady);
    for (const { userId, row } of users) {
      await until(async () => (await row().catch(() => undefined))?.version === 2);
      expect(await call(userId)).toMatchObject({ pincStatus: "success" });
      expect(await row()).toMatchObject({ state: "ACTIVE", version: 2, leaseUntil: undefined });
    }
    expect(endpoint.received).toHaveLength(users.length);
  });

  it("see within a second what another one changed, and at once what they changed themselves", async () => {
    const [user, other] = [await connectUser(undefined), await connectUser(undefined)];
    for (const { userId } of [user, other]) expect(await call(userId)).toMatchObject({ pincStatus: "success" });
    const path = `/oauth/connections/${PROVIDER}?user_id=${user.userId}&public_key=${application.publicKey}`;
    expect((await request(harness.url + path, { method: "DELETE" })).statusCode).toBe(200);
    expect(await call(user.userId)).toMatchObject({ errorType: "INVALID_OAUTHID" });
    await harness.store.connections.delete(other.key, Date.now());
    await until(async () => (await call(other.userId))["errorType"] === "INVALID_OAUTHID");
    await harness.store.applications.update(application.publicKey, { state: "DISABLED" }, Date.now());
    await until(async () => (await call(other.userId))["errorType"] === "INVALID_PUBLIC_KEY");
    await harness.store.applications.update(application.publicKey, { state: "ACTIVE" }, Date.now());
    await until(async () => (await call(other.userId))["errorType"] === "INVALID_OAUTHID");
  });
});

describe.skipIf(POSTGRES_URL === undefined)("a database that is stopped", () => {
  it("makes calls answer STORE_UNAVAILABLE and the relay not ready, until it is started again", async () => {
    const { userId } = await connectUser(undefined);
    expect(await call(userId)).toMatchObject({ pincStatus: "success" });
    await server.stop("fast");
    const away = { pincStatus: "error", errorType: "STORE_UNAVAILABLE", statusCode: 503 };
    await until(async () => (await call(userId))["errorType"] === "STORE_UNAVAILABLE");
    for (const protocol of ["REST", "gRPC"]) expect(await call(userId, harness.url, protocol)).toMatchObject(away);
    expect(await isReady()).toBe(false);
    await server.start();
    for (const protocol of ["REST", "gRPC"]) {
      expect(await call(userId, harness.url, protocol)).toMatchObject({ pincStatus: "success" });
    }
    await until(isReady);
  });

  it("leaves no password, no address and no text of PostgreSQL in the log", () => {
    const log = harness.logLines.join("");
    expect(log).toContain("STORE_UNAVAILABLE");
    expect(log).not.toMatch(/CANARY|postgres:\/\/|search_path|SELECT|terminating/);
  });
});
