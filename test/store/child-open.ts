import { once } from "node:events";
import { mkdirSync } from "node:fs";
import { join } from "node:path";
import { setTimeout as delay } from "node:timers/promises";
import { loadKeyring } from "../../src/sealing/keyring.js";
import { createSealer } from "../../src/sealing/seal.js";
import { openSqliteStore } from "../../src/store/sqlite.js";
import { verifyKeys } from "../../src/store/verify-keys.js";

/**
 * Starts like a relay with nothing there yet, several times, each in a folder of its own. All processes that are given
 * the same moment on standard input do so at the same time. Prints the keys' ids.
 */
const [folder = "", rounds = ""] = process.argv.slice(2);
process.stdout.write("ready \n");
const [startAt] = await once(process.stdin, "data");
const keyIds: string[] = [];
for (let round = 0; round < Number(rounds); round += 1) {
  await delay(Number(startAt) + round * 100 - Date.now());
  const here = join(folder, String(round));
  mkdirSync(here, { recursive: true });
  const sealer = createSealer(await loadKeyring(join(here, "relay.key"), { mustExist: false }));
  const store = openSqliteStore(join(here, "relay.db"));
  await verifyKeys(store, sealer);
  keyIds.push(...(await store.keyChecks.list()).map((check) => check.keyId), sealer.currentKeyId);
  store.close();
}
process.stdout.write(`opened ${keyIds}\n`);
process.stdin.destroy();
