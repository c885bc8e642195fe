import { randomBytes } from "node:crypto";
import { readFileSync, statSync } from "node:fs";
import { join } from "node:path";
import Database from "better-sqlite3";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { loadKeyring } from "../../src/sealing/keyring.js";
import { createSealer } from "../../src/sealing/seal.js";
import { verifyKeys } from "../../src/store/verify-keys.js";
import { sealerForTest } from "../oauth/sealer-for-test.js";
import { tokenSourceForTest } from "../oauth/token-source-for-test.js";
import {
  applicationForTest,
  connectionForTest,
  createStoreFolder,
  exitOf,
  lineOf,
  NOW,
  type StoreFolder,
  startChild,
} from "./store-for-test.js";

let at: StoreFolder;
beforeEach(() => {
  at = createStoreFolder();
});
afterEach(() => at.remove());

const newCanary = () => `CANARY_${randomBytes(24).toString("hex")}`;

/** Names of files that hold any 12 characters of the canary, as they are, in base64 at any alignment, or in hex. */
function filesWith(canary: string): string[] {
  const windows = Array.from({ length: canary.length - 12 }, (_, from) => canary.slice(from, from + 12));
  const needles = windows.flatMap((part) => [
    part,
    Buffer.from(part).toString("hex"),
    Buffer.from(part.slice(0, 9)).toString("base64"),
  ]);
  return [...at.files()].filter(([, bytes]) => needles.some((needle) => bytes.includes(needle))).map(([name]) => name);
}

describe("filesWith()", () => {
  it("would find a token that was stored in the clear", () => {
    const canary = newCanary();
    const raw = at.raw();
    raw.exec("CREATE TABLE t (x)");
    raw.prepare("INSERT INTO t VALUES (?)").run(Buffer.from(canary).toString("base64"));
    expect(filesWith(canary)).toEqual(["relay.db"]);
  });
});

describe("the files of the store", () => {
  it("hold no token, and none of its ciphertext after it was deleted or replaced", async () => {
    const sealer = sealerForTest();
    const canary = newCanary();
    const store = at.open();
    const application = applicationForTest(sealer);
    await store.applications.create(application);
    const gone: Uint8Array[] = [];
    for (let user = 0; user < 200; user += 1) {
      const key = { applicationId: application.id, userId: `u${user}`, providerName: "github" };
      const members = { access_token: `${canary}${"x".repeat(user * 20)}`, refresh_token: canary };
      const { accessToken } = await store.connections.put(connectionForTest(sealer, key, members), NOW);
      if (user % 4 === 3) continue;
      gone.push(accessToken);
      if (user % 2 === 0) await store.connections.delete(key, 1);
      else await store.connections.put(connectionForTest(sealer, key), NOW);
    }
    await at.raw().backup(join(at.folder, "backup.db"));
    at.raw().exec(`VACUUM INTO '${join(at.folder, "vacuum.db")}'`);
    expect([...at.files().keys()]).toEqual(
      expect.arrayContaining(["relay.db-wal", "relay.db-shm", "backup.db", "vacuum.db"]),
    );
    expect(filesWith(canary)).toEqual([]);
    at.raw().pragma("wal_checkpoint(TRUNCATE)");
    const database = readFileSync(at.path);
    expect(gone.filter((ciphertext) => database.includes(Buffer.from(ciphertext.slice(20, 60))))).toEqual([]);
  });

  it.each([40, 65, 90])(
    "hold no token after kill -9, and every connection that was acknowledged (%i)",
    async (count) => {
      const canary = newCanary();
      const child = startChild({ file: "child-writer.ts" }, at.folder, canary);
      let output = "";
      child.stdout?.on("data", (chunk) => {
        output += chunk;
      });
      await lineOf(child, `stored ${count}`);
      child.kill("SIGKILL");
      await exitOf(child);
      const files = [...at.files().keys()].sort();
      expect(files).toEqual(["relay.db", "relay.db-shm", "relay.db-wal", "relay.key"]);
      expect(files.map((name) => statSync(join(at.folder, name)).mode & 0o777)).toEqual(files.map(() => 0o600));
      expect(filesWith(canary)).toEqual([]);
      await expectStored(canary, Number(output.match(/stored (\d+)\n[^\n]*$/)?.[1]));
      expect(filesWith(canary)).toEqual([]);
    },
  );
});

async function expectStored(canary: string, last: number): Promise<void> {
  const sealer = createSealer(await loadKeyring(join(at.folder, "relay.key"), { mustExist: true }));
  const store = at.open();
  await verifyKeys(store, sealer);
  const tokens = tokenSourceForTest({ sealer, now: () => NOW });
  for (let user = 0; user <= last; user += 1) {
    const found = await store.connections.find({ applicationId: "app", userId: `u${user}`, providerName: "github" });
    const token = found && (await tokens.accessToken(found)).reveal();
    expect(token).toBe(user % 3 === 0 ? undefined : `${canary}_a${user}`);
  }
  const raw = new Database(at.path);
  expect(raw.pragma("integrity_check", { simple: true })).toBe("ok");
  raw.close();
}
