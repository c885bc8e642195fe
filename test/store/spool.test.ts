import { existsSync, readdirSync, rmSync, statSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { RelayError } from "../../src/model/errors.js";
import type { Settlement, Spool, UnstoredAnswer } from "../../src/oauth/peers.js";
import { countLeftAnswers, openSpool, type SpooledStore } from "../../src/store/spool.js";
import { ANSWER } from "./spool-for-test.js";
import { createStoreFolder, exitOf, lineOf, type StoreFolder, startChild } from "./store-for-test.js";

const STORE: SpooledStore = { id: "0123abcd", path: undefined };
const OTHER_STORE: SpooledStore = { id: "4567ef01", path: undefined };
let at: StoreFolder;
let folder: string;
let faults: unknown[];
let left: unknown[];
const open: Spool[] = [];

beforeEach(() => {
  at = createStoreFolder();
  folder = join(at.folder, "spool");
  faults = [];
  left = [];
});
afterEach(async () => {
  for (const spool of open.splice(0)) await spool.close(free);
  at.remove();
});

const free = async () => {};

function openOwn(store = STORE): Spool {
  const onLeft = (...values: unknown[]) => void left.push(values);
  const spool = openSpool({ folder, store, onFault: (error) => void faults.push(error), onLeft });
  open.push(spool);
  return spool;
}

/** What a look finds, and forgets. */
async function goneOf(spool: Spool) {
  const gone: Array<readonly [string, readonly UnstoredAnswer[]]> = [];
  let answers: UnstoredAnswer[] = [];
  await spool.settleGone({
    store: async (answer) => void answers.push(answer),
    async free(owner) {
      gone.push([owner, answers]);
      answers = [];
    },
  });
  expect(faults).toEqual([]);
  return gone;
}

/** A process with a spool and an answer in it. */
async function startOther(store = STORE) {
  const child = startChild({ file: "child-spool.ts" }, folder, store.id);
  const owner = (await lineOf(child, "owner ")).slice("owner ".length);
  return {
    owner,
    async kill() {
      child.kill("SIGKILL");
      await exitOf(child);
    },
  };
}

describe("settleGone()", () => {
  it("finds a process that was killed, with the answers that it could not store, once", async () => {
    const own = openOwn();
    const other = await startOther();
    expect(await goneOf(own)).toEqual([]);
    expect(own.knows(other.owner)).toBe(true);
    await other.kill();
    expect(await goneOf(own)).toEqual([[other.owner, [ANSWER]]]);
    expect(await goneOf(own)).toEqual([]);
    expect(own.knows(other.owner)).toBe(false);
  });

  it("keeps everything, leases as well, when the store refuses it", async () => {
    const own = openOwn();
    const other = await startOther();
    await other.kill();
    const refused = new RelayError("STORE_UNAVAILABLE", "refused");
    await own.settleGone({ store: () => Promise.reject(refused), free: () => expect.fail("an answer is not stored") });
    await own.settleGone({ store: async () => {}, free: () => Promise.reject(refused) });
    expect(faults.splice(0)).toEqual([refused, refused]);
    // What is stored is forgotten; the leases are still to be ended.
    expect(await goneOf(own)).toEqual([[other.owner, []]]);
  });

  it("keeps an answer that cannot be stored, and nothing but that", async () => {
    const [gone, own] = [openOwn(), openOwn()];
    gone.keep(ANSWER);
    const second = { ...ANSWER, connection: { ...ANSWER.connection, id: "c2" } };
    gone.keep(second);
    await gone.close(free);
    const stored: UnstoredAnswer[] = [];
    const freed: string[] = [];
    const settlement: Settlement = {
      store: async (answer) => {
        if (answer.connection.id === "c1") throw new Error("its key is gone");
        stored.push(answer);
      },
      free: async (owner) => void freed.push(owner),
    };
    await own.settleGone(settlement);
    expect([stored, freed]).toEqual([[second], []]);
    expect(faults.splice(0)).toHaveLength(1);
    expect(left.splice(0)).toEqual([[join(folder, `${gone.owner}.spool`), 1, "unusable"]]);
    // Neither told nor tried every two seconds.
    await own.settleGone(settlement);
    expect([stored.length, faults, left]).toEqual([1, [], []]);
    expect(countLeftAnswers({ folder, store: STORE })).toBe(1);
    expect(await goneOf(openOwn())).toEqual([[gone.owner, [ANSWER]]]);
  });

  it("stores what a database that was moved or restored left, and leaves a copy what is the original's", async () => {
    const [original, copy] = [join(at.folder, "relay.db"), join(at.folder, "rehearsal.db")];
    writeFileSync(original, "");
    writeFileSync(copy, "");
    const gone = openOwn({ id: "same", path: original });
    gone.keep(ANSWER);
    await gone.close(free);
    const own = openOwn({ id: "same", path: copy });
    await own.settleGone({ store: () => expect.fail("it is the original's"), free });
    expect(left).toEqual([[join(folder, `${gone.owner}.spool`), 1, "other store"]]);
    expect(countLeftAnswers({ folder, store: { id: "same", path: original } })).toBe(1);
    rmSync(original);
    expect(await goneOf(openOwn({ id: "same", path: copy }))).toEqual([[gone.owner, [ANSWER]]]);
  });

  it("counts no answers beside a file that is damaged, which it names", async () => {
    const gone = openOwn();
    gone.keep(ANSWER);
    await gone.close(free);
    const damaged = join(folder, "0123456789abcdef.spool");
    writeFileSync(damaged, Buffer.alloc(8192, 7));
    expect(() => countLeftAnswers({ folder, store: STORE })).toThrow(`${damaged}: cannot be read (SQLITE_NOTADB)`);
    rmSync(damaged);
    expect(countLeftAnswers({ folder, store: STORE })).toBe(1);
  });

  it("looks seldom at a file that is damaged, and tells of it so seldom", async () => {
    const own = openOwn();
    writeFileSync(
      join(folder, "0123456789abcdef.spool"),
      "no database, but long enough to be taken for one".repeat(99),
    );
    await own.settleGone({ store: async () => {}, free });
    expect(faults.splice(0)).toHaveLength(1);
    await own.settleGone({ store: async () => {}, free });
    expect(faults).toEqual([]);
  });

  it("leaves a process of another database to those that use that, and says that an answer waits for them", async () => {
    const own = openOwn();
    const other = await startOther(OTHER_STORE);
    await other.kill();
    await own.settleGone({ store: () => expect.fail("it is another's"), free: () => expect.fail("it is another's") });
    expect(left).toEqual([[join(folder, `${other.owner}.spool`), 1, "other store"]]);
    expect([countLeftAnswers({ folder, store: STORE }), countLeftAnswers({ folder, store: OTHER_STORE })]).toEqual([
      0, 1,
    ]);
    expect(await goneOf(openOwn(OTHER_STORE))).toEqual([[other.owner, [ANSWER]]]);
  });

  it("does not settle what another process settles just now", async () => {
    const [own, peer] = [openOwn(), openOwn()];
    const other = await startOther();
    await other.kill();
    await own.settleGone({ store: async () => expect(await goneOf(peer)).toEqual([]), free });
    expect(faults).toEqual([]);
    expect(await goneOf(peer)).toEqual([]);
  });

  it("takes a process that ended before it had a spool for one that left nothing", async () => {
    const own = openOwn();
    writeFileSync(join(folder, "0123456789abcdef.spool"), "");
    expect(await goneOf(own)).toEqual([["0123456789abcdef", []]]);
    expect(readdirSync(folder).filter((name) => name.startsWith("0123"))).toEqual([]);
  });
});

describe("a spool of this process", () => {
  it("forgets an answer that is stored, gives its leases back at the end, and removes its files", async () => {
    const own = openOwn();
    expect(own.keep(ANSWER)).toBe(true);
    expect(own.keep({ ...ANSWER, tokens: { ...ANSWER.tokens, scope: "newer" } })).toBe(true);
    own.drop(ANSWER);
    const freed: string[] = [];
    await own.close(async (owner) => void freed.push(owner));
    expect(freed).toEqual([own.owner]);
    expect(readdirSync(folder)).toEqual([]);
  });

  it("stays behind with an answer that is not stored, leases and all, and with a lease that could not be given back", async () => {
    const [first, second] = [openOwn(), openOwn()];
    first.keep(ANSWER);
    await first.close(() => expect.fail("another process would send a refresh token whose successor is here"));
    await second.close(() => Promise.reject(new Error("the store refuses")));
    const gone = new Map(await goneOf(openOwn()));
    expect(gone).toEqual(
      new Map([
        [first.owner, [ANSWER]],
        [second.owner, []],
      ]),
    );
  });

  it("has room for answers from its start on, and is for its owner alone", () => {
    const own = openOwn();
    const { size, mode } = statSync(join(folder, `${own.owner}.spool`));
    expect(size).toBeGreaterThan(1024 * 1024);
    expect(mode & 0o077).toBe(0);
    for (let at = 0; at < 100; at += 1) {
      expect(own.keep({ ...ANSWER, connection: { ...ANSWER.connection, id: `c${at}` } })).toBe(true);
    }
    expect(statSync(join(folder, `${own.owner}.spool`)).size).toBe(size);
    expect(existsSync(join(folder, `${own.owner}.spool-journal`))).toBe(true);
  });

  it("says which setting names the folder that cannot be written", () => {
    writeFileSync(join(at.folder, "spool"), "");
    expect(() => openOwn()).toThrow(/RELAY_SPOOL/);
  });
});
