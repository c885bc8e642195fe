import { readdirSync, readFileSync } from "node:fs";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { auditIdBefore, createAuditStamps } from "../../src/admin/administration.js";
import type { Application } from "../../src/applications/application.js";
import { type AuditEntry, type AuditRecord, ChangedMeanwhileError } from "../../src/model/audit.js";
import type { Store } from "../../src/store/store.js";
import { sealerForTest } from "../oauth/sealer-for-test.js";
import { STORES, type StoreBed } from "./store-beds.js";
import { applicationForTest, connectionForTest, NOW } from "./store-for-test.js";

const sealer = sealerForTest();
const newStamp = createAuditStamps(
  () => NOW,
  () => Buffer.alloc(8, 7),
);

function entry(resource: string, patch: Partial<AuditEntry> = {}): AuditEntry {
  const method = "relay.admin.v1.ApplicationService.UpdateApplication";
  return {
    ...newStamp(),
    actor: "alice",
    method,
    resource,
    publicKey: "pk",
    changedFields: ["a", "b"],
    ...patch,
  };
}

describe.each(STORES)("$name", ({ createBed }) => {
  let at: StoreBed;
  let store: Store;
  let application: Application;
  beforeEach(async () => {
    at = await createBed();
    store = await at.open();
    application = applicationForTest(sealer);
    await store.applications.create(application);
  });
  afterEach(() => at.remove());

  const list = (filter: Partial<Parameters<Store["audit"]["list"]>[0]> = {}) =>
    store.audit.list({ beforeId: undefined, publicKey: undefined, limit: 100, ...filter });
  const resources = async () => (await list()).map(({ resource }) => resource).reverse();

  it("gives records back as they were, the newest first, and page by page", async () => {
    const records: AuditRecord[] = ["one", "two", "three"].map((name) => ({ ...entry(name), outcome: "REFUSED" }));
    for (const record of records) await store.audit.add(record);
    const odd: AuditRecord = {
      ...entry("four", { actor: "cli:É\0", publicKey: "pk\0É", changedFields: [] }),
      outcome: "DONE",
    };
    await store.audit.add(odd);
    const newestFirst = [odd, ...records.toReversed()];
    expect(await list()).toEqual(newestFirst);
    expect(await list({ limit: 2 })).toEqual(newestFirst.slice(0, 2));
    expect(await list({ beforeId: records[1]?.id, limit: 2 })).toEqual(newestFirst.slice(3));
    expect(await list({ publicKey: "pk\0É" })).toEqual([odd]);
    expect(await list({ beforeId: auditIdBefore(NOW) })).toEqual([]);
    expect(await list({ beforeId: auditIdBefore(NOW + 1) })).toEqual(newestFirst);
  });

  it("writes an entry with the change that it tells of, or not at all", async () => {
    const { id, publicKey } = application;
    const taken = store.applications.create(applicationForTest(sealer, { publicKey }), entry("taken"));
    await expect(taken).rejects.toThrow();
    await store.applications.create(applicationForTest(sealer), entry("created"));
    await store.applications.update("none", { name: "x" }, NOW, { audit: entry("none") });
    await store.applications.update(publicKey, { name: "x" }, NOW, { audit: entry("updated") });
    const never = { isCurrent: () => false, audit: entry("stale") };
    await expect(store.applications.update(publicKey, { name: "y" }, NOW, never)).rejects.toThrow(
      ChangedMeanwhileError,
    );
    await expect(store.applications.delete(publicKey, never)).rejects.toThrow(ChangedMeanwhileError);
    expect(await store.applications.findByPublicKey(publicKey)).toMatchObject({ name: "x", state: "ACTIVE" });
    const key = { applicationId: id, userId: "u", providerName: "p" };
    await store.connections.delete(key, NOW, entry("no connection"));
    await store.connections.put(connectionForTest(sealer, key), NOW, entry("put"));
    await store.connections.delete(key, NOW, entry("deleted"));
    await store.webhooks.deleteEndpoint(id, entry("no webhook"));
    const endpoint = { applicationId: id, uri: "https://a.example", secret: Buffer.of(1), updatedAt: NOW };
    await store.webhooks.putEndpoint(endpoint, entry("webhook"));
    await store.webhooks.deleteEndpoint(id, entry("webhook deleted"));
    await store.applications.delete("none", { audit: entry("none") });
    await store.applications.delete(publicKey, { audit: entry("application deleted") });
    expect(await resources()).toEqual([
      "created",
      "updated",
      "put",
      "deleted",
      "webhook",
      "webhook deleted",
      "application deleted",
    ]);
  });

  it("changes a client by what is there, one after the other, and writes it down", async () => {
    const client = {
      id: "c",
      applicationId: application.id,
      providerName: "p",
      clientId: "0",
      clientSecret: undefined,
    };
    const made = { ...client, scope: "", originParameters: {}, updatedAt: NOW };
    const other = await at.open();
    const counted = (of: Store, name: string) =>
      of.oauthClients.change(
        application.id,
        "p",
        (current) => ({ ...made, clientId: String(Number(current?.clientId ?? 0) + 1) }),
        entry(name),
      );
    await Promise.all(Array.from({ length: 10 }, (_, at) => counted(at % 2 ? store : other, `${at}`)));
    expect(await store.oauthClients.find(application.id, "p")).toMatchObject({ id: "c", clientId: "10" });
    const failed = store.oauthClients.change(
      application.id,
      "p",
      () => {
        throw new Error("no");
      },
      entry("failed"),
    );
    await expect(failed).rejects.toThrow("no");
    const stale = { isCurrent: () => false, audit: entry("stale") };
    await expect(store.oauthClients.delete(application.id, "p", stale)).rejects.toThrow(ChangedMeanwhileError);
    expect(await store.oauthClients.delete(application.id, "p", { audit: entry("deleted") })).toBe(true);
    expect(await store.oauthClients.delete(application.id, "p", { audit: entry("none") })).toBe(false);
    expect((await resources()).sort()).toEqual([...Array.from({ length: 10 }, (_, at) => `${at}`), "deleted"]);
  });

  it("lets one of two changes that are based on the same state through", async () => {
    const other = await at.open();
    const { publicKey } = application;
    const change = (of: Store, name: string) =>
      of.applications.update(publicKey, { name }, NOW, { isCurrent: (row) => row.name === application.name });
    const outcomes = await Promise.allSettled([change(store, "a"), change(other, "b"), change(store, "c")]);
    expect(outcomes.map(({ status }) => status).sort()).toEqual(["fulfilled", "rejected", "rejected"]);
  });
});

describe("the audit trail", () => {
  it("cannot be changed in SQLite, by nobody", async () => {
    const bed = await STORES[0]?.createBed();
    const store = await bed?.open();
    await store?.audit.add({ ...entry("kept"), outcome: "DONE" });
    for (const sql of ["UPDATE audit_records SET actor = 'bob'", "DELETE FROM audit_records"]) {
      await expect(bed?.run(sql)).rejects.toThrow(/audit records are never/);
    }
    await bed?.remove();
  });

  it("is changed by no statement of the relay", () => {
    const sources = readdirSync("src/store").map((name) => readFileSync(`src/store/${name}`, "utf8"));
    const statements = sources.flatMap((text) => text.match(/\b(UPDATE|DELETE FROM|TRUNCATE)\s+audit_records/gi) ?? []);
    expect(statements).toEqual([]);
  });
});
