import { join } from "node:path";
import { loadKeyring } from "../../src/sealing/keyring.js";
import { createSealer } from "../../src/sealing/seal.js";
import { openSqliteStore } from "../../src/store/sqlite.js";
import { verifyKeys } from "../../src/store/verify-keys.js";
import { applicationForTest, connectionForTest, NOW } from "./store-for-test.js";

/** Stores and deletes connections until it is killed, and says which are stored. Their tokens hold the given canary. */
const [folder = "", canary = ""] = process.argv.slice(2);
const sealer = createSealer(await loadKeyring(join(folder, "relay.key"), { mustExist: false }));
const store = openSqliteStore(join(folder, "relay.db"));
await verifyKeys(store, sealer);
const application = applicationForTest(sealer, { id: "app" });
await store.applications.create(application);
for (let user = 0; ; user += 1) {
  const members = {
    access_token: `${canary}_a${user}`,
    refresh_token: `${canary}_r${user}`,
    id_token: `${canary}_i${user}`,
  };
  const key = { applicationId: "app", userId: `u${user}`, providerName: "github" };
  await store.connections.put(connectionForTest(sealer, key, members), NOW);
  if (user % 3 === 0) await store.connections.delete(key, 1);
  process.stdout.write(`stored ${user}\n`);
}
