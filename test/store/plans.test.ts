import Database from "better-sqlite3";
import { afterEach, describe, expect, it, vi } from "vitest";
import { openSqliteStore } from "../../src/store/sqlite.js";
import type { Store } from "../../src/store/store.js";
import { sealerForTest } from "../oauth/sealer-for-test.js";
import { blockForTest, storedCallForTest } from "../records/call-for-test.js";
import { applicationForTest, connectionForTest, createStoreFolder, NOW } from "./store-for-test.js";

afterEach(() => void vi.restoreAllMocks());

/** What the console asks for, each of which must cost the same of a million connections as of one. */
const QUESTIONS: Readonly<Record<string, (store: Store, applicationId: string) => Promise<unknown>>> = {
  "all connections": ({ connections }) =>
    connections.scan({ applicationId: undefined, user: { prefix: "" }, after: undefined, limit: 10 }),
  "connections of an application whose users begin so": ({ connections }, applicationId) =>
    connections.scan({ applicationId, user: { prefix: "a" }, after: undefined, limit: 10 }),
  "a user of whatever application": ({ connections }) => connections.scanUser("ada", undefined, 10),
  "the last refreshes of a connection": ({ connections }, applicationId) =>
    connections.refreshesOf({ applicationId, userId: "ada", providerName: "p" }),
  "the user of a connection": ({ connections }) => connections.userOf("an id"),
  "the newest calls": ({ calls }) => calls.list({ applicationId: undefined, beforeSequence: undefined, limit: 8 }),
  "calls of an application and a time": ({ calls }, applicationId) =>
    calls.list({ applicationId, beforeSequence: 9, startAt: 1, endAt: 2, limit: 8 }),
  "deliveries of an application": ({ webhooks }, applicationId) =>
    webhooks.listDeliveries({
      applicationId,
      userId: undefined,
      providerName: undefined,
      beforePlace: undefined,
      limit: 10,
    }),
  "deliveries of a user": ({ webhooks }, applicationId) =>
    webhooks.listDeliveries({ applicationId, userId: "ada", providerName: undefined, beforePlace: 9, limit: 10 }),
  "deliveries of a connection": ({ webhooks }, applicationId) =>
    webhooks.listDeliveries({ applicationId, userId: "ada", providerName: "p", beforePlace: 9, limit: 10 }),
  "what waits for an endpoint": ({ webhooks }, applicationId) => webhooks.backlog(applicationId),
  "figures of all": async ({ figures }) => {
    for await (const _row of figures.read({ span: "MINUTE", kind: "ALL", id: "", fromAt: 1 }));
  },
  "figures of every provider": async ({ figures }) => {
    for await (const _row of figures.read({ span: "MINUTE", kind: "PROVIDER", id: undefined, fromAt: 1 }));
  },
  "what needs attention": (store) => store.inspect("k1"),
  "audit records of an application": ({ audit }) => audit.list({ beforeId: "x", publicKey: "pk", limit: 10 }),
};

/** How SQLite goes about each statement that was prepared. */
function plansOf(
  prepared: ReadonlyMap<string, Database.Database>,
  explain: Database.Database["prepare"],
): readonly string[] {
  return [...prepared].flatMap(([sql, db]) => {
    const names = [...sql.matchAll(/[:@]([a-zA-Z]+)/g)].map(([, name = ""]) => [name, null]);
    const rows = explain.call(db, `EXPLAIN QUERY PLAN ${sql}`).all(Object.fromEntries(names)) as { detail: string }[];
    return rows.map(({ detail }) => `${detail} in ${sql.replaceAll(/\s+/g, " ")}`);
  });
}

describe("what the console asks of the store", () => {
  it.each(Object.entries(QUESTIONS))("goes by an index and sorts nothing: %s", async (_what, ask) => {
    const at = createStoreFolder();
    const store = openSqliteStore(at.path, { now: () => NOW });
    const sealer = sealerForTest();
    const application = applicationForTest(sealer);
    await store.applications.create(application);
    await store.connections.put(
      connectionForTest(sealer, { applicationId: application.id, userId: "ada", providerName: "p" }),
      NOW,
    );
    await store.calls.append([blockForTest(application.id, [storedCallForTest(application.id, NOW)])], 100);
    const prepared = new Map<string, Database.Database>();
    const { prepare } = Database.prototype;
    vi.spyOn(Database.prototype, "prepare").mockImplementation(function (this: Database.Database, sql: string) {
      if (/^\s*(?:SELECT|WITH)/.test(sql)) prepared.set(sql, this);
      return prepare.call(this, sql);
    });
    await ask(store, application.id);
    expect(prepared.size).toBeGreaterThan(0);
    const plans = plansOf(prepared, prepare);
    // Of a partial index, or of one subquery's few rows, all may be read.
    const isWhole = (plan: string) =>
      /^SCAN \w+(?: USING COVERING INDEX (?!\w+_(?:failing|refused|given_up))| in )/.test(plan);
    const few = /^SCAN (?:told|few|due|failing|ended|given_up|counted|CONSTANT)\b/;
    expect(plans.filter((plan) => (isWhole(plan) && !few.test(plan)) || plan.includes("TEMP B-TREE"))).toEqual([]);
    // Whatever counts all of something reads no more than the index.
    expect(plans.filter((plan) => /^SEARCH \w+ USING INDEX .* SELECT count\(\*\) AS waiting/.test(plan))).toEqual([]);
    store.close();
    at.remove();
  });
});
