import { afterEach, beforeEach, describe, expect, it } from "vitest";
import type { Application } from "../../src/applications/application.js";
import type { Connection } from "../../src/oauth/connection.js";
import { createSealer, Secret } from "../../src/sealing/seal.js";
import type { Store } from "../../src/store/store.js";
import { resealAll } from "../../src/store/verify-keys.js";
import {
  type DueEvent,
  openWebhookSecret,
  sealWebhookSecret,
  type WebhookEndpoint,
} from "../../src/webhooks/webhook-store.js";
import { keyForTest, keyringForTest } from "../oauth/sealer-for-test.js";
import { STORES, type StoreBed } from "./store-beds.js";
import { applicationForTest, connectionForTest, createStoreFolder, NOW } from "./store-for-test.js";

const K1 = keyForTest("k1");
const K2 = keyForTest("k2");
const sealer = createSealer(keyringForTest(K1));
const UNTIL = NOW + 30_000;
const DELIVERED = { kind: "delivered", statusCode: 204, at: NOW } as const;
const RETRYING = { kind: "retry", statusCode: undefined, at: NOW } as const;

describe.each(STORES)("$name", ({ createBed }) => {
  let at: StoreBed;
  let store: Store;
  let application: Application;

  beforeEach(async () => {
    at = await createBed();
    store = await at.open();
    application = await told();
  });
  afterEach(() => at.remove());

  function endpointOf({ id }: Application, patch: Partial<WebhookEndpoint> = {}): WebhookEndpoint {
    const secret = sealWebhookSecret(sealer, id, new Secret("whsec_AAAA"));
    return { applicationId: id, uri: "https://app.example/hook", secret, updatedAt: NOW, ...patch };
  }

  /** An application with an endpoint. */
  async function told(): Promise<Application> {
    const created = applicationForTest(sealer);
    await store.applications.create(created);
    await store.webhooks.putEndpoint(endpointOf(created));
    return created;
  }

  /** Adds rows of the application to a table. @param values of the further columns, in SQL. */
  const addMany = (table: string, columns: string, values: string, rows: number) =>
    at.run(`INSERT INTO ${table} (id, application_id, ${columns})
      WITH RECURSIVE row(number) AS (SELECT 1 UNION ALL SELECT number + 1 FROM row WHERE number < ${rows})
      SELECT 'row ' || number, '${application.id}', ${values} FROM row`);

  const keyOf = (userId: string, { id: applicationId } = application) => ({ applicationId, userId, providerName: "p" });

  async function put(userId: string, now = NOW, of = application): Promise<void> {
    await store.connections.put(connectionForTest(sealer, keyOf(userId, of)), now);
  }

  const claim = (now = NOW, limit = 10, until = now + 30_000) => store.webhooks.claimDue(limit, until, now);

  async function claimOne(now = NOW): Promise<DueEvent> {
    const [event, ...others] = await claim(now);
    if (event === undefined || others.length > 0) throw new Error("expected one event");
    return event;
  }

  const userOf = ({ payload }: DueEvent) => JSON.parse(payload).data.user_id;

  describe("endpoints", () => {
    it("are found, replaced and deleted, each for its application alone", async () => {
      const other = await told();
      const replaced = endpointOf(application, { uri: "https://app.example/new", updatedAt: NOW + 1 });
      await store.webhooks.putEndpoint(replaced);
      expect(await store.webhooks.findEndpoint(application.id)).toEqual(replaced);
      expect(await store.webhooks.findEndpoint(other.id)).toMatchObject({ uri: "https://app.example/hook" });
      expect(await store.webhooks.deleteEndpoint(application.id)).toBe(true);
      expect(await store.webhooks.deleteEndpoint(application.id)).toBe(false);
      expect(await store.webhooks.findEndpoint(application.id)).toBeUndefined();
      expect(await store.webhooks.findEndpoint(other.id)).toBeDefined();
    });

    it("take what waits for them along when they are deleted", async () => {
      await put("a");
      await store.webhooks.deleteEndpoint(application.id);
      await store.webhooks.putEndpoint(endpointOf(application));
      expect(await store.webhooks.backlog(application.id)).toEqual({ waiting: 0, oldestAt: undefined });
      expect(await claim()).toEqual([]);
    });

    it.each(["application", "endpoint"] as const)("end in short transactions with their %s", async (what) => {
      const [rows, others] = [1000, await told()];
      await put("a", NOW, others);
      await addMany("webhook_events", "payload, next_try_at, created_at", "'{}', 0, 0", rows);
      const columns = "type, user_id, provider_name, outcome, attempts, status, created_at, attempted_at";
      await addMany("webhook_deliveries", columns, "'t', '', '', 'DELIVERED', 1, 200, 0, 0", rows);
      const operations: string[] = [];
      const deleting = await at.open({ onOperation: (kind) => void operations.push(kind) });
      if (what === "endpoint") await deleting.webhooks.deleteEndpoint(application.id);
      else await deleting.applications.delete(application.publicKey);
      const left = async (table: string) =>
        (await at.rows(`SELECT application_id AS id FROM ${table}`)).map(({ id }) => id);
      expect(await left("webhook_events")).toEqual([others.id]);
      expect(await left("webhook_deliveries")).toHaveLength(what === "endpoint" ? rows : 0);
      const writes = operations.filter((kind) => kind === "write").length;
      expect(writes).toBeGreaterThanOrEqual(what === "endpoint" ? rows / 200 : (2 * rows) / 200);
    });

    it("are gone when not all that waits for them can be deleted, and leave none of it to the next one", async () => {
      await addMany("webhook_events", "payload, next_try_at, created_at", "'{}', number, 0", 300);
      await at.run("CREATE TABLE holder (id TEXT REFERENCES webhook_events (id))");
      await at.run("INSERT INTO holder VALUES ('row 250')");
      await expect(store.webhooks.deleteEndpoint(application.id)).rejects.toThrow();
      expect(await store.webhooks.findEndpoint(application.id)).toBeUndefined();
      expect((await store.inspect("")).waitingEvents).toEqual([]);
      await at.run("DROP TABLE holder");
      await store.webhooks.putEndpoint(endpointOf(application));
      await put("a");
      expect(userOf(await claimOne())).toBe("a");
      expect((await store.webhooks.backlog(application.id)).waiting).toBe(1);
    });

    it("leave no event that is written while they are deleted", async () => {
      await put("a");
      await store.webhooks.finish(await claimOne(), NOW, DELIVERED);
      const other = await at.open();
      await Promise.all([
        ...Array.from({ length: 10 }, (_, user) =>
          store.connections.put(connectionForTest(sealer, keyOf(`u${user}`)), NOW),
        ),
        other.webhooks.deleteEndpoint(application.id),
      ]);
      expect(await at.rows("SELECT id FROM webhook_events")).toEqual([]);
    });

    it("end with their application", async () => {
      await put("a");
      await store.applications.delete(application.publicKey);
      expect(await store.webhooks.findEndpoint(application.id)).toBeUndefined();
      expect(await at.rows("SELECT id FROM webhook_events")).toEqual([]);
    });

    it("have a secret that is sealed anew with the other secrets, and for nobody else's endpoint", async () => {
      const other = await told();
      expect((await resealAll(store, createSealer(keyringForTest(K2, K1)))).left).toBe(0);
      const endpoint = await store.webhooks.findEndpoint(application.id);
      if (endpoint === undefined) throw new Error("no endpoint");
      const newOnly = createSealer(keyringForTest(K2));
      expect(openWebhookSecret(newOnly, endpoint).reveal()).toBe("whsec_AAAA");
      expect(() => openWebhookSecret(newOnly, { ...endpoint, applicationId: other.id })).toThrow("cannot be opened");
      expect(() => openWebhookSecret(sealer, endpoint)).toThrow("cannot be opened");
    });
  });

  describe("events", () => {
    it("are written with the change they tell of, and not without it", async () => {
      await put("a", NOW);
      await store.connections.delete(keyOf("a"), NOW + 1);
      expect(await store.connections.delete(keyOf("a"), NOW + 2)).toBeUndefined();
      expect(await store.webhooks.backlog(application.id)).toEqual({ waiting: 2, oldestAt: NOW });
    });

    it("tell that a connection which was given up lives again", async () => {
      await put("ada");
      await store.webhooks.finish(await claimOne(), NOW, DELIVERED);
      const row = async () => (await store.connections.find(keyOf("ada"))) as Connection;
      await store.connections.requireReauthorization(await row(), "rotation_lost_suspected", NOW);
      await store.webhooks.finish(await claimOne(), NOW, DELIVERED);
      // The second time it is a refresh like any other, of which nobody is told.
      for (const _ of [1, 2]) {
        const connection = await row();
        const tokens = { ...connection, lateRefreshToken: undefined, scope: "s" };
        expect(await store.connections.commitRefresh(connection, tokens, NOW)).toBe("stored");
      }
      const event = await claimOne();
      expect(event.type).toBe("connection.created");
      await store.webhooks.finish(event, NOW, DELIVERED);
      expect(await claim()).toEqual([]);
    });

    it("tell once that a user must connect again", async () => {
      await put("a");
      await store.webhooks.finish(await claimOne(), NOW, DELIVERED);
      const connection = await store.connections.find(keyOf("a"));
      if (connection === undefined) throw new Error("no connection");
      expect(await store.connections.requireReauthorization(connection, "invalid_grant", NOW)).toBe(true);
      expect(await store.connections.requireReauthorization(connection, "invalid_grant", NOW)).toBe(false);
      const event = await claimOne();
      expect(event.type).toBe("connection.reauthorization_required");
      expect(JSON.parse(event.payload).data.reason).toBe("invalid_grant");
      expect((await store.webhooks.backlog(application.id)).waiting).toBe(1);
    });

    it("hold no token", async () => {
      const tokens = { access_token: "canary-a", refresh_token: "canary-r", id_token: "canary-i" };
      await store.connections.put(connectionForTest(sealer, keyOf("a"), tokens), NOW);
      expect((await claimOne()).payload).not.toContain("canary");
    });

    it("are not written for applications without an endpoint", async () => {
      const silent = applicationForTest(sealer);
      await store.applications.create(silent);
      await put("a", NOW, silent);
      expect((await store.webhooks.backlog(silent.id)).waiting).toBe(0);
    });
  });

  describe("claimDue()", () => {
    it("gives the oldest event of each endpoint, with the endpoint, and counts the attempt", async () => {
      const other = await told();
      for (const user of ["a", "b"]) await put(user);
      await put("c", NOW, other);
      const events = await claim();
      expect(events.map(userOf).sort()).toEqual(["a", "c"]);
      expect(events.find((event) => userOf(event) === "a")).toMatchObject({
        type: "connection.created",
        attempts: 1,
        createdAt: NOW,
        claimedUntil: UNTIL,
        endpoint: { applicationId: application.id, uri: "https://app.example/hook" },
      });
    });

    it("gives nobody else an event of the same endpoint until the claim ends, then the same one", async () => {
      for (const user of ["a", "b"]) await put(user);
      const { id } = await claimOne();
      expect(await claim()).toEqual([]);
      expect(await claim(UNTIL - 1)).toEqual([]);
      expect(await claimOne(UNTIL)).toMatchObject({ id, attempts: 2 });
    });

    it("gives the next one when the last is finished", async () => {
      for (const user of ["a", "b"]) await put(user);
      await store.webhooks.finish(await claimOne(), NOW, DELIVERED);
      const next = await claimOne();
      expect(userOf(next)).toBe("b");
      await store.webhooks.finish(next, NOW + 50, DELIVERED);
      expect((await store.webhooks.backlog(application.id)).waiting).toBe(0);
    });

    it("gives no event before its next try, and none of the endpoint before its rest is over", async () => {
      for (const user of ["a", "b"]) await put(user);
      await store.webhooks.putOff(await claimOne(), NOW + 500, NOW + 100, RETRYING);
      expect(await claim(NOW + 99)).toEqual([]);
      const second = await claimOne(NOW + 100);
      expect(userOf(second)).toBe("b");
      await store.webhooks.finish(second, NOW + 100, DELIVERED);
      expect(await claim(NOW + 499)).toEqual([]);
      expect(userOf(await claimOne(NOW + 500))).toBe("a");
    });

    it("gives the oldest of those that are due, also when another was due before it", async () => {
      for (const user of ["a", "b"]) await put(user);
      await store.webhooks.putOff(await claimOne(), NOW + 500, NOW + 500, RETRYING);
      expect(userOf(await claimOne(NOW + 500))).toBe("a");
    });

    it("gives at most so many, those first whose endpoint was idle longest", async () => {
      const applications = [application, await told(), await told()];
      for (const user of ["a", "b"]) for (const each of applications) await put(user, NOW, each);
      const first = await claim(NOW, 2);
      expect(first).toHaveLength(2);
      for (const event of first) await store.webhooks.finish(event, NOW, DELIVERED);
      const [third] = await claim(NOW, 1);
      expect(first.map(({ endpoint }) => endpoint.applicationId)).not.toContain(third?.endpoint.applicationId);
    });

    it("lets a late owner end nobody else's claim", async () => {
      for (const user of ["a", "b"]) await put(user);
      const late = await claimOne();
      const again = await claimOne(UNTIL);
      await store.webhooks.finish(late, UNTIL, DELIVERED);
      expect(await claim(UNTIL)).toEqual([]);
      await store.webhooks.putOff(again, UNTIL + 1, UNTIL + 1, RETRYING);
      expect(userOf(await claimOne(UNTIL + 1))).toBe("b");
    });

    it.each(["retry", "givenUp"] as const)("lets a late owner change nothing after %s", async (kind) => {
      await put("a");
      const late = await claimOne();
      const again = await claimOne(UNTIL);
      await store.webhooks.putOff(again, UNTIL + 500, UNTIL + 100, RETRYING);
      const rows = () => at.rows("SELECT id, outcome, attempts, attempted_at FROM webhook_deliveries");
      const before = await rows();
      const outcome = { kind, statusCode: 503, at: UNTIL + 1 };
      if (kind === "retry") await store.webhooks.putOff(late, UNTIL + 200, UNTIL + 50, outcome);
      else await store.webhooks.finish(late, UNTIL + 50, outcome);
      expect(await rows()).toEqual(before);
      expect(await claim(UNTIL + 499)).toEqual([]);
      const last = await claimOne(UNTIL + 500);
      await store.webhooks.finish(last, UNTIL + 500, DELIVERED);
      await store.webhooks.putOff(again, UNTIL + 600, UNTIL + 600, RETRYING);
      expect(await rows()).toMatchObject([{ outcome: "DELIVERED" }]);
    });

    it("believes a late owner that it has delivered the event", async () => {
      await put("a");
      const late = await claimOne();
      const again = await claimOne(UNTIL);
      await store.webhooks.finish(late, UNTIL, DELIVERED);
      await store.webhooks.putOff(again, UNTIL + 500, UNTIL + 100, RETRYING);
      expect(await claim(UNTIL + 500)).toEqual([]);
      expect(await at.rows("SELECT outcome FROM webhook_deliveries")).toEqual([{ outcome: "DELIVERED" }]);
    });

    it("gives nothing of a disabled application", async () => {
      await put("a");
      await store.applications.update(application.publicKey, { state: "DISABLED" }, NOW);
      expect(await claim()).toEqual([]);
    });

    it("keeps claims when the endpoint is replaced", async () => {
      await put("a");
      await claimOne();
      await store.webhooks.putEndpoint(endpointOf(application));
      expect(await claim()).toEqual([]);
    });

    it("waits for no time that only a clock far ahead can have set", async () => {
      const minute = 60_000;
      for (const user of ["a", "b"]) await put(user);
      await store.webhooks.putOff(await claimOne(), NOW + 27 * 60 * minute, NOW + 6 * minute, RETRYING);
      expect(await claim()).toEqual([]);
      expect(await claim(NOW - 1)).toMatchObject([{ attempts: 2 }]);
      await at.run("UPDATE webhook_endpoints SET free_at = ?", NOW + 365 * 24 * 60 * minute);
      const event = await claimOne();
      expect([userOf(event), event.attempts]).toEqual(["b", 1]);
      await store.webhooks.finish(event, NOW, DELIVERED);
      await at.run("UPDATE webhook_events SET next_try_at = ?", NOW + 365 * 24 * 60 * minute);
      expect(userOf(await claimOne())).toBe("a");
    });

    it("gives events of one application to one of two processes only", async () => {
      const second = await at.open();
      for (let user = 0; user < 5; user += 1) await put(`u${user}`);
      const both = await Promise.all([claim(), second.webhooks.claimDue(10, UNTIL, NOW)]);
      expect(both.flat()).toHaveLength(1);
    });
  });
});

describe("claimDue() in SQLite", () => {
  it("takes no write lock while nothing is due", async () => {
    const folder = createStoreFolder();
    const sqlite = folder.open();
    const raw = folder.raw();
    raw.exec("BEGIN IMMEDIATE");
    expect(await sqlite.webhooks.claimDue(10, UNTIL, NOW)).toEqual([]);
    raw.exec("ROLLBACK");
    folder.remove();
  });
});
