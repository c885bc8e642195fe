import { existsSync, readdirSync, statSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import type { Spool, UnstoredAnswer } from "../../src/oauth/peers.js";
import { openSpool } from "../../src/store/spool.js";
import { ANSWER } from "./spool-for-test.js";
import { createStoreFolder, exitOf, lineOf, type StoreFolder, startChild } from "./store-for-test.js";

const STORE = "sqlite:/srv/relay.db";
let at: StoreFolder;
let folder: string;
let faults: unknown[];
const open: Spool[] = [];

beforeEach(() => {
  at = createStoreFolder();
  folder = join(at.folder, "spool");
  faults = [];
});
afterEach(() => {
  for (const spool of open.splice(0)) spool.close(true);
  at.remove();
});

function openOwn(store = STORE): Spool {
  const spool = openSpool({ folder, store, onFault: (error) => void faults.push(error) });
  open.push(spool);
  return spool;
}

/** What a look finds, and forgets. */
async function goneOf(spool: Spool) {
  const gone: Array<readonly [string, readonly UnstoredAnswer[]]> = [];
  await spool.settleGone(async (owner, answers) => void gone.push([owner, answers]));
  expect(faults).toEqual([]);
  return gone;
}

/** A process with a spool and an answer in it. */
async function startOther(store = STORE) {
  const child = startChild({ file: "child-spool.ts" }, folder, store);
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

  it("keeps everything when it could not be settled", async () => {
    const own = openOwn();
    const other = await startOther();
    await other.kill();
    const refused = new Error("the store refuses");
    await own.settleGone(() => Promise.reject(refused));
    expect(faults.splice(0)).toEqual([refused]);
    expect(await goneOf(own)).toEqual([[other.owner, [ANSWER]]]);
  });

  it("leaves a process of another database to those that use that", async () => {
    const own = openOwn();
    const other = await startOther("sqlite:/srv/other.db");
    await other.kill();
    expect(await goneOf(own)).toEqual([]);
    expect(await goneOf(openOwn("sqlite:/srv/other.db"))).toEqual([[other.owner, [ANSWER]]]);
  });

  it("does not settle what another process settles just now", async () => {
    const [own, peer] = [openOwn(), openOwn()];
    const other = await startOther();
    await other.kill();
    await own.settleGone(async () => expect(await goneOf(peer)).toEqual([]));
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
  it("forgets an answer that is stored, and removes its files at the end", async () => {
    const own = openOwn();
    expect(own.keep(ANSWER)).toBe(true);
    expect(own.keep({ ...ANSWER, tokens: { ...ANSWER.tokens, scope: "newer" } })).toBe(true);
    expect(own.isEmpty()).toBe(false);
    own.drop(ANSWER);
    expect(own.isEmpty()).toBe(true);
    own.close(true);
    expect(readdirSync(folder)).toEqual([]);
  });

  it("stays behind with an answer that is not stored, or with a lease that could not be given back", async () => {
    const [first, second] = [openOwn(), openOwn()];
    first.keep(ANSWER);
    first.close(true);
    second.close(false);
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
