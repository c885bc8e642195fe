import { randomBytes, randomUUID } from "node:crypto";
import { join } from "node:path";
import Database from "better-sqlite3";
import { newConnectionFrom } from "../../src/oauth/store-answer.js";
import { parseTokenResponse } from "../../src/oauth/token-response.js";
import { loadKeyring } from "../../src/sealing/keyring.js";
import { createSealer, type Sealer } from "../../src/sealing/seal.js";
import { CONNECTION_COLUMNS, rowFromConnection } from "../../src/store/connection-row.js";
import { camelCase } from "../../src/store/database.js";
import { openSqliteStore } from "../../src/store/sqlite.js";
import { verifyKeys } from "../../src/store/verify-keys.js";
import { createApplication } from "../support/harness.js";
import { putOAuthClient } from "../support/put-oauth-client.js";

/** The provider that all users are connected at. */
export const PROVIDER_NAME = "bench";

/** The id of a user by number; strangers have no connection. */
export function userIdOf(number: number, user: "connected" | "stranger"): string {
  return `${user === "connected" ? "u" : "s"}${String(number).padStart(7, "0")}`;
}

/** Keys of the one application. */
export interface BenchKeys {
  readonly publicKey: string;
  readonly privateKey: string;
}

/**
 * Makes a store of one application with so many connected users, as quickly as can be: one transaction. Returns the
 * application's keys.
 *
 * @param ended how many users follow whose tokens have ended, and can be refreshed.
 * @public Imported by a process of its own, in the checkout whose relay is measured.
 */
export async function createBenchStore(folder: string, connections: number, ended = 0): Promise<BenchKeys> {
  const file = join(folder, "relay.db");
  const store = openSqliteStore(file);
  const sealer = createSealer(await loadKeyring(join(folder, "relay.key"), { mustExist: false }));
  const application = await createApplication(store, sealer, {});
  // As the relay's first start leaves it: without a check of the key, the next start reads every row.
  await verifyKeys(store, sealer);
  await putOAuthClient(store.oauthClients, {
    id: randomUUID(),
    applicationId: application.id,
    providerName: PROVIDER_NAME,
    clientId: "bench",
    clientSecret: undefined,
    scope: "",
    originParameters: {},
    updatedAt: Date.now(),
  });
  store.close();
  insertAll(file, sealer, application.id, { connections, ended });
  return application;
}

const HOUR_MS = 3_600_000;

function insertAll(
  file: string,
  sealer: Sealer,
  applicationId: string,
  { connections, ended }: { readonly connections: number; readonly ended: number },
): void {
  const db = new Database(file);
  // All of it fits into memory, and what is not finished is thrown away.
  for (const fast of ["journal_mode = OFF", "cache_size = -1000000", "synchronous = OFF"]) db.pragma(fast);
  const names = CONNECTION_COLUMNS.split(",").map((name) => `:${camelCase(name.trim())}`);
  const insert = db.prepare(`INSERT INTO connections (${CONNECTION_COLUMNS}) VALUES (${names.join(", ")})`);
  const now = Date.now();
  db.transaction(() => {
    for (let number = 0; number < connections + ended; number++) {
      const token = randomBytes(30).toString("base64url");
      const isEnded = number >= connections;
      const response = {
        access_token: token,
        ...(isEnded ? { refresh_token: token, expires_in: HOUR_MS / 1000 } : {}),
      };
      const connection = newConnectionFrom(sealer, {
        id: randomUUID(),
        key: { applicationId, userId: userIdOf(number, "connected"), providerName: PROVIDER_NAME },
        response: parseTokenResponse(JSON.stringify(response)),
        defaultExpiresInS: undefined,
        originParameters: {},
        obtainedAt: isEnded ? now - 2 * HOUR_MS : now,
      });
      insert.run(rowFromConnection(connection, now));
    }
  })();
  db.pragma("journal_mode = WAL");
  db.close();
}
