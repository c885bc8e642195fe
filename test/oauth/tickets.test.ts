import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { createTickets, type StatePayload, type Tickets } from "../../src/oauth/tickets.js";
import type { SqliteStore } from "../../src/store/sqlite.js";
import { applicationForTest, createStoreFolder, NOW, type StoreFolder } from "../store/store-for-test.js";
import { sealerForTest } from "./sealer-for-test.js";

const MINUTE = 60_000;
const BROWSER = "B".repeat(43);
const OTHER = "C".repeat(43);
const SESSION = {
  publicKey: "p",
  providers: [],
  redirectUri: undefined,
  openerOrigin: undefined,
  scope: undefined,
  isPage: true,
};
const LINK = { ...SESSION, originParameters: {} };
const STATE: StatePayload = {
  publicKey: "p",
  providerName: "github",
  codeVerifier: "CANARY_VERIFIER",
  originParameters: { shop: "acme" },
  redirectUri: undefined,
  openerOrigin: undefined,
  session: "CANARY_SESSION",
};

const sealer = sealerForTest();
let at: StoreFolder;
let store: SqliteStore;
let tickets: Tickets;
let now: number;
let owner: { applicationId: string; userId: string };

beforeEach(async () => {
  at = createStoreFolder();
  store = at.open();
  now = NOW;
  tickets = createTickets({ store: store.tickets, sealer, now: () => now });
  const application = applicationForTest(sealer);
  await store.applications.create(application);
  owner = { applicationId: application.id, userId: "ada" };
});

afterEach(() => at.remove());

describe("a ticket", () => {
  it("gives back what it carries, with its owner, once", async () => {
    const { secret, expiresAt } = await tickets.issue("STATE", owner, BROWSER, STATE);
    expect(secret).toMatch(/^[\w-]{43}$/);
    expect(expiresAt).toBe(NOW + 10 * MINUTE);
    expect(await tickets.take("STATE", secret, BROWSER)).toEqual({ ...owner, payload: STATE });
    expect(await tickets.take("STATE", secret, BROWSER)).toBeUndefined();
    expect(await tickets.find("STATE", secret, BROWSER)).toBeUndefined();
  });

  it("may be looked at again and again", async () => {
    const { secret } = await tickets.issue("SESSION", owner, BROWSER, SESSION);
    for (let times = 0; times < 3; times += 1) {
      expect(await tickets.find("SESSION", secret, BROWSER)).toMatchObject({ payload: { isPage: true } });
    }
  });

  it("is taken by one of many who come at once", async () => {
    const { secret } = await tickets.issue("STATE", owner, BROWSER, STATE);
    const second = createTickets({ store: at.open().tickets, sealer, now: () => now });
    const takes = Array.from({ length: 20 }, (_, one) => (one % 2 ? tickets : second).take("STATE", secret, BROWSER));
    expect((await Promise.all(takes)).filter((ticket) => ticket !== undefined)).toHaveLength(1);
  });

  it.each<[string, "STATE" | "SESSION" | "LINK", string]>([
    ["of another browser", "STATE", OTHER],
    ["of no browser", "STATE", ""],
    ["as another kind", "SESSION", BROWSER],
    ["as a link", "LINK", BROWSER],
  ])("is not found %s, and stays", async (_, kind, browser) => {
    const { secret } = await tickets.issue("STATE", owner, BROWSER, STATE);
    expect(await tickets.take(kind, secret, browser)).toBeUndefined();
    expect(await tickets.find(kind, secret, browser)).toBeUndefined();
    expect(await tickets.take("STATE", secret, BROWSER)).toBeDefined();
  });

  it("that is a link is any browser's", async () => {
    const { secret } = await tickets.issue("LINK", owner, undefined, LINK);
    expect(await tickets.take("LINK", secret, OTHER)).toMatchObject({ payload: { originParameters: {} } });
  });

  it.each([
    ["LINK", 15],
    ["SESSION", 30],
    ["STATE", 10],
  ] as const)("of kind %s ends after %i minutes, to the millisecond", async (kind, minutes) => {
    const { secret } = await tickets.issue(kind, owner, BROWSER, { ...STATE, ...LINK } as never);
    now += minutes * MINUTE - 1;
    expect(await tickets.find(kind, secret, BROWSER)).toBeDefined();
    now += 1;
    expect(await tickets.find(kind, secret, BROWSER)).toBeUndefined();
    expect(await tickets.take(kind, secret, BROWSER)).toBeUndefined();
  });

  it.each(["LINK", "SESSION", "STATE"] as const)("of kind %s ends with the clock that was ahead", async (kind) => {
    now += 365 * 24 * 60 * MINUTE;
    const { secret } = await tickets.issue(kind, owner, BROWSER, { ...STATE, ...LINK } as never);
    expect(await tickets.find(kind, secret, BROWSER)).toBeDefined();
    now = NOW;
    expect(await tickets.find(kind, secret, BROWSER)).toBeUndefined();
    expect(await tickets.take(kind, secret, BROWSER)).toBeUndefined();
    now += 300 * 24 * 60 * MINUTE;
    expect(await tickets.find(kind, secret, BROWSER)).toBeUndefined();
  });

  it.each(["", "x", "A".repeat(42), "A".repeat(44), "/".repeat(43), `${"A".repeat(42)}\n`, "A".repeat(100_000)])(
    "is no text of another form: %#",
    async (secret) => {
      expect(await tickets.find("STATE", secret, BROWSER)).toBeUndefined();
      expect(await tickets.take("STATE", secret, BROWSER)).toBeUndefined();
    },
  );

  it("is no other application's or user's: what it carries opens for its owner only", async () => {
    const { secret } = await tickets.issue("STATE", owner, BROWSER, STATE);
    at.change((db) => db.exec("UPDATE tickets SET user_id = 'eve'"));
    await expect(tickets.take("STATE", secret, BROWSER)).rejects.toMatchObject({ reason: "STORE_UNAVAILABLE" });
  });

  it("goes with its application", async () => {
    const { secret } = await tickets.issue("STATE", owner, BROWSER, STATE);
    const [application] = await store.applications.list();
    await store.applications.delete(application?.publicKey ?? "");
    expect(await tickets.take("STATE", secret, BROWSER)).toBeUndefined();
  });

  it("leaves neither its secret, its browser nor what it carries in a file", async () => {
    const { secret } = await tickets.issue("STATE", owner, BROWSER, STATE);
    const files = [...at.files().values()].map((bytes) => bytes.toString("latin1")).join();
    expect(files).toContain(owner.applicationId);
    for (const text of [secret, BROWSER, "CANARY", "github", "acme"]) expect(files).not.toContain(text);
  });
});

describe("the limit of tickets", () => {
  const full = (kind: string, expiresAt: number, count: number) =>
    at.change((db) => {
      db.prepare(`
        WITH RECURSIVE n (i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < ?)
        INSERT INTO tickets SELECT ? || i, ?, '', ?, 'eve', x'00', ? FROM n`).run(
        count,
        kind,
        kind,
        owner.applicationId,
        expiresAt,
      );
    });

  it("is each application's and kind's own", async () => {
    full("LINK", NOW + MINUTE, 50_000);
    await expect(tickets.issue("LINK", owner, undefined, LINK)).rejects.toMatchObject({ reason: "OVERLOADED" });
    await tickets.issue("SESSION", owner, BROWSER, SESSION);
    const other = applicationForTest(sealer);
    await store.applications.create(other);
    await tickets.issue("LINK", { ...owner, applicationId: other.id }, undefined, LINK);
    now += MINUTE;
    await tickets.issue("LINK", owner, undefined, LINK);
  });

  it.each(["SESSION", "STATE"] as const)("closes no page to others when strangers make each %s", async (kind) => {
    full(kind, NOW + MINUTE, 50_000);
    const { secret } = await tickets.issue(kind, owner, BROWSER, { ...STATE, ...LINK } as never);
    expect(await tickets.find(kind, secret, BROWSER)).toBeDefined();
  });

  it("is found without reading what is counted", () => {
    const plan = at
      .raw()
      .prepare(
        "EXPLAIN QUERY PLAN SELECT count(*) FROM tickets WHERE application_id = ? AND kind = ? AND expires_at > ? AND expires_at <= ?",
      )
      .all("a", "STATE", 1, 2);
    expect(JSON.stringify(plan)).toContain("COVERING INDEX tickets_by_application");
  });

  it("counts nothing that has ended, and what has ended is swept away", async () => {
    full("STATE", NOW, 50_000);
    for (let times = 0; times < 3; times += 1) await tickets.issue("STATE", owner, BROWSER, STATE);
    expect(at.raw().prepare("SELECT count(*) FROM tickets").pluck().get()).toBe(50_003 - 60);
  });
});
