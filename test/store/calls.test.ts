import {
  closeSync,
  existsSync,
  fstatSync,
  mkdirSync,
  openSync,
  readFileSync,
  rmSync,
  statSync,
  writeFileSync,
  writeSync,
} from "node:fs";
import Database from "better-sqlite3";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import type { Application } from "../../src/applications/application.js";
import { callsFromBlock, type StoredBlock } from "../../src/records/call-block.js";
import type { Store } from "../../src/store/store.js";
import { sealerForTest } from "../oauth/sealer-for-test.js";
import { blockForTest, storedCallForTest } from "../records/call-for-test.js";
import { STORES, type StoreBed } from "./store-beds.js";
import { applicationForTest, createStoreFolder, NOW, type StoreFolder } from "./store-for-test.js";

const sealer = sealerForTest();
const MANY = 1_000_000;

describe.each(STORES)("$name", ({ createBed }) => {
  let at: StoreBed;
  let store: Store;
  let application: Application;

  beforeEach(async () => {
    at = await createBed();
    store = await at.open();
    application = await create();
  });
  afterEach(() => at.remove());

  async function create(): Promise<Application> {
    const created = applicationForTest(sealer);
    await store.applications.create(created);
    return created;
  }

  /** A block of calls that began a millisecond after each other. */
  function block(count: number, firstAt = NOW, { id } = application) {
    const calls = Array.from({ length: count }, (_, index) => storedCallForTest(id, firstAt + index));
    return blockForTest(id, calls);
  }

  const listed = (applicationId: string | undefined = undefined, more: object = {}) =>
    store.calls.list({ applicationId, beforeSequence: undefined, limit: 100, ...more });
  const counts = (blocks: readonly StoredBlock[]) => blocks.map(({ count }) => count);

  it("keeps blocks as they were written, newest first, and counts what it wrote", async () => {
    const first = block(3);
    expect(await store.calls.append([first], MANY)).toBe(3);
    await store.calls.append([block(2, NOW + 10)], MANY);
    const [newest, oldest] = await listed(application.id);
    expect(oldest).toEqual({ ...first, sequence: expect.any(Number) });
    expect(newest?.sequence).toBeGreaterThan(oldest?.sequence ?? Number.NaN);
    expect(callsFromBlock(first).map(({ startedAt }) => startedAt)).toEqual([NOW, NOW + 1, NOW + 2]);
  });

  it("looks through a bounded number of blocks for those of a time, and gives the last one to go on from", async () => {
    const many = Array.from({ length: 510 }, (_, at) => block(1, NOW + at));
    await store.calls.append(many, 1000);
    for (const of of [undefined, application.id]) {
      const later = { startAt: NOW + 1000 };
      const [first, ...others] = await listed(of, later);
      expect([first?.firstAt, others]).toEqual([NOW + 10, []]);
      const [last, ...more] = await listed(of, { ...later, beforeSequence: first?.sequence });
      expect([last?.firstAt, more]).toEqual([NOW, []]);
      expect(await listed(of, { ...later, beforeSequence: last?.sequence })).toEqual([]);
      const some = await listed(of, { startAt: NOW + 507, endAt: NOW + 509 });
      expect(some.map(({ firstAt }) => firstAt - NOW)).toEqual([508, 507, 10]);
    }
  });

  it("lists those of one application or of all, page by page", async () => {
    const other = await create();
    await store.calls.append([block(1), block(2, NOW, other)], MANY);
    await store.calls.append([block(3)], MANY);
    expect(counts(await listed(application.id))).toEqual([3, 1]);
    expect(counts(await listed(other.id))).toEqual([2]);
    expect(counts(await listed())).toEqual([3, 2, 1]);
    const [newest] = await listed(undefined, { limit: 1 });
    expect(counts(await listed(undefined, { beforeSequence: newest?.sequence }))).toEqual([2, 1]);
    expect(counts(await listed(application.id, { beforeSequence: newest?.sequence }))).toEqual([1]);
  });

  it("keeps at most so many calls of each application, and those of others", async () => {
    const other = await create();
    await store.calls.append([block(4, NOW, other)], 10);
    for (let turn = 0; turn < 8; turn += 1) await store.calls.append([block(3, NOW + turn)], 10);
    const kept = await listed(application.id);
    expect(counts(kept)).toEqual([3, 3, 3]);
    expect(kept[0]?.firstAt).toBe(NOW + 7);
    expect(counts(await listed(other.id))).toEqual([4]);
  });

  it("comes down to a smaller ring, some blocks at a time", async () => {
    for (let turn = 0; turn < 40; turn += 1) await store.calls.append([block(1, NOW + turn)], MANY);
    await store.calls.append([block(1, NOW + 40)], 5);
    expect(await listed(application.id)).toHaveLength(21);
    await store.calls.append([block(1, NOW + 41)], 5);
    expect((await listed(application.id)).map(({ firstAt }) => firstAt - NOW)).toEqual([41, 40, 39, 38, 37]);
  });

  it("leaves out calls of an application that does not exist any more", async () => {
    const gone = applicationForTest(sealer);
    expect(await store.calls.append([block(2, NOW, gone), block(1)], MANY)).toBe(1);
    expect(await store.calls.append([block(2, NOW, gone)], MANY)).toBe(0);
    expect(counts(await listed())).toEqual([1]);
  });

  it("deletes them with their application", async () => {
    const other = await create();
    for (let turn = 0; turn < 25; turn += 1) await store.calls.append([block(1)], MANY);
    await store.calls.append([block(2, NOW, other)], MANY);
    await store.applications.delete(application.publicKey);
    expect(counts(await listed())).toEqual([2]);
  });

  it("deletes what began before a time, at most so many blocks", async () => {
    for (const firstAt of [NOW, NOW + 100, NOW + 200]) await store.calls.append([block(3, firstAt)], MANY);
    expect(await store.calls.deleteBefore(NOW + 2, 10)).toBe(0);
    expect(await store.calls.deleteBefore(NOW + 200, 1)).toBe(1);
    expect((await listed()).map(({ firstAt }) => firstAt - NOW)).toEqual([200, 100]);
    expect(await store.calls.deleteBefore(NOW + 200, 10)).toBe(1);
  });

  it("gives out what comes behind a block, also when that one is deleted", async () => {
    expect(await store.calls.lastSequence()).toBe(0);
    expect(await store.calls.listAfter(0, 10)).toEqual([]);
    await store.calls.append([block(1)], MANY);
    const seen = await store.calls.lastSequence();
    await store.calls.deleteBefore(NOW + 1, 10);
    await store.calls.append([block(2)], MANY);
    await store.calls.append([block(3)], MANY);
    expect(counts(await store.calls.listAfter(seen, 10))).toEqual([2, 3]);
    expect(counts(await store.calls.listAfter(seen, 1))).toEqual([2]);
  });

  it("finds the block of a call, also of one that lasted for hours", async () => {
    const hours = 20 * 3_600_000;
    const calls = [storedCallForTest(application.id, NOW - hours), storedCallForTest(application.id, NOW + 5)];
    await store.calls.append([blockForTest(application.id, calls), block(3)], MANY);
    for (const { callId, startedAt } of calls) {
      expect((await store.calls.findBlock(callId, startedAt))?.count).toBe(2);
    }
    const other = storedCallForTest(application.id, NOW + 5);
    expect(await store.calls.findBlock(other.callId, other.startedAt)).toBeUndefined();
  });

  it("takes blocks of two processes at once", async () => {
    const second = await at.open();
    const stores = [store, second, store, second, store, second];
    await Promise.all(stores.map((each) => each.calls.append([block(2)], MANY)));
    const blocks = await listed(application.id);
    expect(new Set(blocks.map(({ sequence }) => sequence)).size).toBe(6);
    await store.calls.append([block(1)], 7);
    expect(counts(await listed(application.id))).toEqual([1, 2, 2, 2]);
  });

  describe("captures", () => {
    const capture = (callId: string, patch: object = {}) => ({
      callId,
      applicationId: application.id,
      captureUntil: NOW + 600_000,
      content: Buffer.from("sealed"),
      createdAt: NOW,
      ...patch,
    });

    it("are found, and end with their application", async () => {
      expect(await store.captures.add(capture("a"), 100)).toBe(true);
      expect(await store.captures.find("a")).toEqual(capture("a"));
      expect(await store.captures.find("b")).toBeUndefined();
      await store.applications.delete(application.publicKey);
      expect(await store.captures.find("a")).toBeUndefined();
      expect(await store.captures.add(capture("b"), 100)).toBe(false);
    });

    it("are limited for each capture of an application", async () => {
      const added = async (callId: string, patch?: object) => store.captures.add(capture(callId, patch), 2);
      expect([await added("a"), await added("b"), await added("c")]).toEqual([true, true, false]);
      expect(await added("d", { captureUntil: NOW + 700_000 })).toBe(true);
      const other = await create();
      expect(await added("e", { applicationId: other.id })).toBe(true);
    });

    it("are limited over all processes, however many add at once", async () => {
      const second = await at.open();
      const stores = Array.from({ length: 24 }, (_, n) => (n % 2 ? second : store));
      // With connections that are open already they come closer together.
      await Promise.all(stores.map(({ captures }) => captures.find("none")));
      const adds = stores.map(({ captures }, n) => captures.add(capture(`n${n}`), 3));
      expect((await Promise.all(adds)).filter(Boolean)).toHaveLength(3);
    });

    it("are deleted by age", async () => {
      await store.captures.add(capture("a"), 100);
      await store.captures.add(capture("b", { createdAt: NOW + 1 }), 100);
      expect(await store.captures.deleteBefore(NOW + 1, 10)).toBe(1);
      expect(await store.captures.find("a")).toBeUndefined();
      expect(await store.captures.find("b")).toBeDefined();
    });

    it("begin and end with the application's switch", async () => {
      const switched = async (captureUntil: number) => {
        await store.applications.update(application.publicKey, { captureUntil }, NOW);
        return (await store.applications.findByPublicKey(application.publicKey))?.captureUntil;
      };
      expect(application.captureUntil).toBe(0);
      expect([await switched(NOW + 5), await switched(0)]).toEqual([NOW + 5, 0]);
    });
  });
});

describe("the file of calls", () => {
  it("is made when there is something to write, for the owner alone, and costs no other process its rows", async () => {
    const folder = createStoreFolder();
    const store = folder.open();
    const application = applicationForTest(sealer);
    await store.applications.create(application);
    await store.calls.list({ applicationId: undefined, beforeSequence: undefined, limit: 1 });
    await store.applications.delete(applicationForTest(sealer).publicKey);
    const file = `${folder.path}-calls`;
    expect(existsSync(file)).toBe(false);
    const other = folder.raw();
    const before = other.pragma("data_version", { simple: true });
    await store.calls.append([blockForTest(application.id, [storedCallForTest(application.id, NOW)])], MANY);
    expect(other.pragma("data_version", { simple: true })).toBe(before);
    expect(statSync(file).mode & 0o777).toBe(0o600);
    folder.remove();
  });

  const DAMAGE = "this is no database, whatever its name may say".repeat(100);

  /** Puts what is no database in the place of the file. */
  function spoil({ path }: StoreFolder): void {
    for (const suffix of ["", "-wal", "-shm"]) rmSync(`${path}-calls${suffix}`, { force: true });
    writeFileSync(`${path}-calls`, DAMAGE);
  }

  /** A store with an application, and one block of its calls. */
  async function storeWithBlock(folder: StoreFolder) {
    const asides: string[] = [];
    const store = folder.open({ onDamagedCalls: (aside) => asides.push(aside) });
    const application = applicationForTest(sealer);
    const { id } = application;
    await store.applications.create(application);
    const append = () => store.calls.append([blockForTest(id, [storedCallForTest(id, NOW)])], MANY);
    const list = () => store.calls.list({ applicationId: undefined, beforeSequence: undefined, limit: 10 });
    return { store, application, asides, append, list };
  }

  it("is moved aside and begun anew when it is damaged, whatever finds that out", async () => {
    const folder = createStoreFolder();
    const file = `${folder.path}-calls`;
    const { store, application, asides, append, list } = await storeWithBlock(folder);
    spoil(folder);
    expect(await append()).toBe(1);
    expect(asides).toEqual([`${file}-damaged`]);
    expect(readFileSync(`${file}-damaged`, "utf8")).toBe(DAMAGE);
    expect(await list()).toHaveLength(1);
    spoil(folder);
    expect(await list()).toEqual([]);
    expect(asides).toHaveLength(2);
    spoil(folder);
    expect(await store.applications.delete(application.publicKey)).toBe(true);
    expect(existsSync(file)).toBe(false);
    folder.remove();
  });

  it("is moved aside and begun anew when another build has made it otherwise", async () => {
    const folder = createStoreFolder();
    const first = await storeWithBlock(folder);
    await first.append();
    first.store.close();
    const other = new Database(`${folder.path}-calls`);
    other.exec("DROP TABLE call_figures");
    other.close();
    const { asides, append, list, store } = await storeWithBlock(folder);
    expect(await append()).toBe(1);
    expect(asides).toEqual([`${folder.path}-calls-damaged`]);
    expect(await list()).toHaveLength(1);
    await store.figures.put("writer", []);
    folder.remove();
  });

  it("is begun anew when it turns out to be damaged in use, and what comes is behind what was", async () => {
    const folder = createStoreFolder();
    const first = await storeWithBlock(folder);
    await first.append();
    const before = await first.store.calls.lastSequence();
    first.store.close();
    const file = openSync(`${folder.path}-calls`, "r+");
    // All but the first page, which says what the file is.
    writeSync(file, Buffer.alloc(fstatSync(file).size - 4096, 0xff), 0, undefined, 4096);
    closeSync(file);
    const { asides, append, list, store } = await storeWithBlock(folder);
    expect(await append()).toBe(1);
    expect(asides).toHaveLength(1);
    expect(await list()).toHaveLength(1);
    expect(await store.calls.lastSequence()).toBeGreaterThanOrEqual(before);
    folder.remove();
  });

  it("is moved aside once when several operations find the damage in one turn", async () => {
    const folder = createStoreFolder();
    const first = await storeWithBlock(folder);
    for (let count = 0; count < 20; count += 1) await first.append();
    first.store.close();
    const file = openSync(`${folder.path}-calls`, "r+");
    writeSync(file, Buffer.alloc(fstatSync(file).size - 4096, 0xff), 0, undefined, 4096);
    closeSync(file);
    const { asides, append, list } = await storeWithBlock(folder);
    expect(await Promise.all([append(), append()])).toEqual([1, 1]);
    expect(asides).toEqual([`${folder.path}-calls-damaged`]);
    const { size } = statSync(`${folder.path}-calls-damaged`);
    expect(readFileSync(`${folder.path}-calls-damaged`).subarray(4096)).toEqual(Buffer.alloc(size - 4096, 0xff));
    expect(await list()).toHaveLength(2);
    folder.remove();
  });

  it("is the new one for every process that had the old one open", async () => {
    const folder = createStoreFolder();
    const holder = await storeWithBlock(folder);
    await holder.append();
    const { asides, append, list } = await storeWithBlock(folder);
    spoil(folder);
    await append();
    await holder.append();
    expect(await list()).toHaveLength(2);
    expect([...asides, ...holder.asides]).toHaveLength(1);
    folder.remove();
  });

  it("costs the records alone when it cannot be opened", async () => {
    const folder = createStoreFolder();
    mkdirSync(`${folder.path}-calls`);
    const { store, application, asides, append } = await storeWithBlock(folder);
    await expect(append()).rejects.toMatchObject({ reason: "STORE_UNAVAILABLE" });
    expect(asides).toEqual([]);
    expect(await store.applications.findByPublicKey(application.publicKey)).toBeDefined();
    folder.remove();
  });

  it("is not made anew by what comes after the end", async () => {
    const folder = createStoreFolder();
    const store = folder.open();
    const application = applicationForTest(sealer);
    await store.applications.create(application);
    store.close();
    const block = blockForTest(application.id, [storedCallForTest(application.id, NOW)]);
    await expect(store.calls.append([block], MANY)).rejects.toThrow();
    expect(existsSync(`${folder.path}-calls`)).toBe(false);
    folder.remove();
  });
});
