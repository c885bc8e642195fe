import { afterEach, beforeEach, describe, expect, it, onTestFinished, vi } from "vitest";
import { type PostgresLocation, parseDatabaseLocation } from "../../src/config/database-location.js";
import { UnconfirmedWriteError } from "../../src/model/errors.js";
import type { Connection, Lease, RefreshedTokens } from "../../src/oauth/connection.js";
import { openPostgresStore, type PostgresStore } from "../../src/store/postgres.js";
import { sealerForTest } from "../oauth/sealer-for-test.js";
import { createTestDatabase, POSTGRES_URL, type TestDatabase } from "../support/postgres.js";
import { type PostgresProxy, startPostgresProxy } from "../support/postgres-proxy.js";
import { applicationForTest, connectionForTest, NOW } from "./store-for-test.js";

const sealer = sealerForTest();
const TIMEOUT_MS = 1000;
const UNAVAILABLE = { reason: "STORE_UNAVAILABLE" };

let database: TestDatabase;
beforeEach(async () => {
  if (POSTGRES_URL !== undefined) database = await createTestDatabase();
});
afterEach(async () => {
  await database?.remove();
});

async function open(url = database.url, timeoutMs = TIMEOUT_MS): Promise<PostgresStore> {
  const store = await openPostgresStore(parseDatabaseLocation(url) as PostgresLocation, {
    maxConnections: 3,
    timeoutMs,
  });
  onTestFinished(() => store.close());
  return store;
}

async function openThroughProxy(): Promise<{ store: PostgresStore; proxy: PostgresProxy }> {
  const proxy = await startPostgresProxy(database.url);
  const store = await open(proxy.url);
  onTestFinished(() => proxy.close());
  return { store, proxy };
}

async function connected(store: PostgresStore): Promise<Connection> {
  const application = applicationForTest(sealer);
  await store.applications.create(application);
  const key = { applicationId: application.id, userId: "u", providerName: "github" };
  return store.connections.put(connectionForTest(sealer, key, { refresh_token: "r" }), NOW);
}

async function leased(store: PostgresStore): Promise<Lease> {
  return (await store.connections.takeLease(await connected(store), "me", 60_000)) as Lease;
}

const tokens = (text: string): RefreshedTokens => ({
  accessToken: Buffer.from(text),
  refreshToken: Buffer.from(`refresh ${text}`),
  lateRefreshToken: Buffer.from(`late ${text}`),
  idToken: undefined,
  scope: undefined,
  obtainedAt: NOW,
  expiresAt: undefined,
});

const PID = "SELECT pg_backend_pid() AS pid, pg_sleep(0.05)";

/** Has the server end every connection of a store, idle as they are. */
async function endConnections({ session }: PostgresStore): Promise<void> {
  const found = await Promise.all([1, 2, 3].map(() => session.read(({ send }) => send(PID))));
  for (const { rows } of found) await database.query("SELECT pg_terminate_backend($1)", [rows[0].pid]);
}

describe.skipIf(POSTGRES_URL === undefined)("a connection that ends", () => {
  it("while nobody uses it costs nothing, whatever comes next", async () => {
    const store = await open();
    const connection = await connected(store);
    for (const use of [
      () => store.ready(),
      () => store.connections.find(connection),
      () => store.applications.update("none", { name: "x" }, NOW),
    ]) {
      await endConnections(store);
      await use();
    }
  });

  it("before COMMIT has come leaves nothing; the tokens are stored when they are written again", async () => {
    const { store, proxy } = await openThroughProxy();
    const lease = await leased(store);
    proxy.cut("before", "COMMIT");
    await expect(store.connections.commitRefresh(lease.connection, tokens("new"), NOW)).rejects.toMatchObject(
      UNAVAILABLE,
    );
    expect(await store.connections.find(lease.connection)).toMatchObject({ version: 1 });
    expect(await store.connections.commitRefresh(lease.connection, tokens("new"), NOW)).toBe("stored");
    expect(await store.connections.find(lease.connection)).toMatchObject({
      version: 2,
      accessToken: Buffer.from("new"),
      refreshToken: Buffer.from("refresh new"),
      leaseUntil: undefined,
    });
  });

  it.each(["before", "after"] as const)(
    "%s COMMIT has come leaves a write of which nobody knows whether it was done",
    async (when) => {
      const { store, proxy } = await openThroughProxy();
      const connection = await connected(store);
      proxy.cut(when, "COMMIT");
      const unconfirmed = store.connections.takeLease(connection, "me", 60_000);
      await expect(unconfirmed).rejects.toMatchObject(UNAVAILABLE);
      await expect(unconfirmed).rejects.toBeInstanceOf(UnconfirmedWriteError);
    },
  );

  it("before the answer to COMMIT has come: whoever writes again finds its own tokens stored", async () => {
    const { store, proxy } = await openThroughProxy();
    const lease = await leased(store);
    proxy.cut("after", "COMMIT");
    await expect(store.connections.commitRefresh(lease.connection, tokens("new"), NOW)).rejects.toMatchObject(
      UNAVAILABLE,
    );
    expect(await store.connections.find(lease.connection)).toMatchObject({ version: 2 });
    expect(await store.connections.commitRefresh(lease.connection, tokens("new"), NOW)).toBe("stored");
    expect(await store.connections.commitRefresh(lease.connection, tokens("another's"), NOW)).toBe("superseded");
    expect(await store.connections.find(lease.connection)).toMatchObject({
      version: 2,
      accessToken: Buffer.from("new"),
      refreshToken: Buffer.from("refresh new"),
    });
  });
});

describe.skipIf(POSTGRES_URL === undefined)("a server that does not answer in time", () => {
  it("ends a statement that waits for a lock, and goes on with the next", async () => {
    // Made before, so that no statement needs long.
    await open();
    const store = await open(database.url, 2000);
    const connection = await connected(store);
    await database.query("BEGIN; SELECT * FROM connections FOR UPDATE");
    const refused = store.connections.takeLease(connection, "me", 1);
    await expect(refused).rejects.toMatchObject(UNAVAILABLE);
    // Nothing was done, and nothing has to be undone.
    await expect(refused).rejects.not.toBeInstanceOf(UnconfirmedWriteError);
    await store.ready();
    await database.query("ROLLBACK");
    expect(await store.connections.takeLease(connection, "me", 1)).toBeDefined();
  });

  it("is given up when it says nothing at all", async () => {
    const { store, proxy } = await openThroughProxy();
    proxy.silence();
    await expect(store.ready()).rejects.toMatchObject(UNAVAILABLE);
    await expect(store.applications.update("x", { name: "x" }, NOW)).rejects.toMatchObject(UNAVAILABLE);
  });

  it("makes nobody wait for a connection for ever", async () => {
    // Made before, so that no statement needs long.
    await open();
    const store = await open(database.url, 1000);
    const slow = "SELECT pg_sleep(0.6)";
    const work = () => store.session.read(async ({ send }) => [await send(slow), await send(slow)]);
    const results = await Promise.allSettled([work(), work(), work(), store.ready()]);
    expect(results.map(({ status }) => status)).toEqual(["fulfilled", "fulfilled", "fulfilled", "rejected"]);
  });
});

describe.skipIf(POSTGRES_URL === undefined)("transactions that are in each other's way", () => {
  it("are run again, and both are done", async () => {
    const store = await open();
    for (const id of ["a", "b"]) await store.applications.create(applicationForTest(sealer, { id, name: "" }));
    const append = "UPDATE applications SET name = name || '\\x2b'::bytea WHERE id = $1";
    let waiting = 0;
    let bothHaveOne: () => void = () => {};
    const both = new Promise<void>((resolve) => (bothHaveOne = resolve));
    const work = (first: string, second: string) =>
      store.session.write(async ({ send }) => {
        await send(append, [first]);
        if (++waiting === 2) bothHaveOne();
        await both;
        await send(append, [second]);
      });
    await Promise.all([work("a", "b"), work("b", "a")]);
    expect((await store.applications.list()).map(({ name }) => name)).toEqual(["++", "++"]);
    expect(waiting).toBe(3);
  });

  it("use up a link only once they have its application, as a change of the application does", async () => {
    const store = await open(database.url, 30_000);
    const application = applicationForTest(sealer);
    await store.applications.create(application);
    const ticket = {
      browser: "",
      applicationId: application.id,
      userId: "u",
      payload: Buffer.from(""),
      expiresAt: NOW + 1,
    };
    const link = { ...ticket, id: "link", kind: "LINK" } as const;
    await store.tickets.add(link, 1, NOW);
    await database.query("BEGIN; SELECT * FROM applications FOR UPDATE");
    const added = store.tickets.add({ ...ticket, id: "session", kind: "SESSION" }, 1, NOW, link);
    const waiting = "SELECT pid FROM pg_stat_activity WHERE pg_backend_pid() = ANY (pg_blocking_pids(pid))";
    await expect.poll(() => database.query(waiting)).toHaveLength(1);
    await expect(database.query("SELECT * FROM tickets FOR UPDATE NOWAIT")).resolves.toHaveLength(1);
    await database.query("ROLLBACK");
    expect(await added).toBe(true);
  });
});

describe.skipIf(POSTGRES_URL === undefined)("openPostgresStore()", () => {
  const withOption = (option: string) => database.url.replace(/$/, encodeURIComponent(` -c ${option}`));
  const setting = async (store: PostgresStore, name: string) => {
    const { rows } = await store.session.read(({ send }) => send("SELECT current_setting($1) AS value", [name]));
    return rows[0].value;
  };

  it("bounds statements and transactions, and makes commits durable that would not be", async () => {
    const store = await open(withOption("synchronous_commit=off"));
    expect(await setting(store, "synchronous_commit")).toBe("on");
    expect(await setting(store, "statement_timeout")).toBe("1s");
    const stronger = await open(withOption("synchronous_commit=remote_apply"));
    expect(await setting(stronger, "synchronous_commit")).toBe("remote_apply");
    expect(await setting(stronger, "idle_in_transaction_session_timeout")).toBe("1s");
    expect(await setting(stronger, "application_name")).toBe("provider-call-relay");
  });

  it("takes the password from PGPASSWORD where the URL has none", async () => {
    vi.stubEnv("PGPASSWORD", new URL(database.url).password);
    onTestFinished(() => void vi.unstubAllEnvs());
    await (await open(database.url.replace(/:[^:@]*@/, "@"))).ready();
  });

  it.each([
    ["a standby", () => withOption("default_transaction_read_only=on"), /standby/],
    ["a wrong password", () => database.url.replace(/:[^:@]*@/, ":CANARY_wrong@"), /refuses the user or the password/],
    ["a missing database", () => database.url.replace("/postgres?", "/missing?"), /does not exist on this server/],
    ["nobody who listens", () => database.url.replace(/:\d+\//, ":1/"), /ECONNREFUSED/],
    ["a server without TLS", () => `${database.url}&sslmode=verify-full`, /sslmode/],
  ])("rejects for %s, and shows neither user nor password", async (_what, url, text) => {
    // With nothing left to write at the start.
    await open();
    const error = await open(url()).then(
      () => undefined,
      (thrown: Error) => thrown,
    );
    expect(error?.name).toBe("StoreOpenError");
    expect(error?.message).toMatch(text);
    expect(error?.message).not.toMatch(/CANARY|@/);
  });
});
