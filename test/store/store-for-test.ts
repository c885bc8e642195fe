import { type ChildProcess, spawn } from "node:child_process";
import { randomUUID } from "node:crypto";
import { existsSync, mkdtempSync, readdirSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import Database from "better-sqlite3";
import { expect } from "vitest";
import { type Application, createPrivateKey, sealPrivateKeyHash } from "../../src/applications/application.js";
import type { ConnectionKey, NewConnection } from "../../src/oauth/connection.js";
import { newConnectionFrom } from "../../src/oauth/store-answer.js";
import { parseTokenResponse } from "../../src/oauth/token-response.js";
import type { Sealer } from "../../src/sealing/seal.js";
import { openSqliteStore, type SqliteStore } from "../../src/store/sqlite.js";
import type { Store, StoreOptions } from "../../src/store/store.js";

export const NOW = 1_800_000_000_000;

/** SQL that writes an application in a database of the first version. @param hash of its key, as the database writes bytes. */
export function oldApplicationSql(hash: string): string {
  return `INSERT INTO applications (id, name, public_key, private_key_hash, caller_auth, allowed_origins, allowed_addresses,
    calls_per_minute, connection_calls_per_minute, state, created_at, updated_at)
    VALUES ('old', 'Old', 'old-key-1', ${hash}, 'PUBLIC_KEY', '[]', '[]', 0, 0, 'ACTIVE', 1, 1)`;
}

/** The same of a connection of that application, with a token that can be refreshed. @param token both, as the database writes bytes. */
export function oldConnectionSql(token: string): string {
  return `INSERT INTO connections (id, application_id, user_id, provider_name, state, access_token, refresh_token,
    token_type, scope, origin_parameters, obtained_at, expires_at, version, created_at, updated_at)
    VALUES ('old', 'old', 'ada', 'github', 'ACTIVE', ${token}, ${token}, 'Bearer', 'a b', '{}', 1, 2, 1, 1, 1)`;
}

/** Expects what the two above wrote in a store that is of this version by now, and that it works there. */
export async function expectOldRows(store: Pick<Store, "applications" | "connections" | "sessions">): Promise<void> {
  expect(await store.applications.findByPublicKey("old-key-1")).toMatchObject({ id: "old", name: "Old" });
  expect(await store.applications.iconOf("old")).toHaveLength(0);
  expect(await store.sessions.isEnded("x")).toBe(false);
  const { before, after, attempts } = await refreshOldConnection(store);
  expect(before).toMatchObject({ userId: "ada", scope: "a b", accessToken: Buffer.from("old"), expiresAt: 2 });
  expect(after).toMatchObject({ userId: "ada", scope: "a b", accessToken: Buffer.from("new"), state: "ACTIVE" });
  expect(attempts).toMatchObject([{ outcome: "refreshed", cause: "due" }]);
}

/** Refreshes what {@link oldConnectionSql} wrote. */
async function refreshOldConnection({ connections }: Pick<Store, "connections">) {
  const key = { applicationId: "old", userId: "ada", providerName: "github" };
  const before = await connections.find(key);
  const lease = before && (await connections.takeLease(before, "me", 60_000));
  if (lease === undefined) throw new Error("There is no such connection, or its lease is taken");
  const tokens = { accessToken: Buffer.from("new"), obtainedAt: NOW, expiresAt: undefined, scope: undefined };
  const others = { refreshToken: undefined, lateRefreshToken: undefined, idToken: undefined };
  const attempt = { at: NOW, durationMs: 7, outcome: "refreshed", cause: "due", answer: "" } as const;
  await connections.commitRefresh(lease.connection, { ...tokens, ...others, attempt }, NOW);
  return { before, after: await connections.find(key), attempts: await connections.refreshesOf(key) };
}

/** A folder of its own, with a database path in it. */
export interface StoreFolder {
  readonly folder: string;
  readonly path: string;
  /** Opens the store; closed with the folder at the latest. */
  open(options?: StoreOptions): SqliteStore;
  /** A plain connection to the same file, to look at it or to damage it. */
  raw(): Database.Database;
  /** Changes the file through a plain connection, which is closed at once. */
  change(work: (db: Database.Database) => void): void;
  /** Every file of the folder by name. */
  files(): ReadonlyMap<string, Buffer>;
  remove(): void;
}

/** In memory where there is a folder for that: for tests that are not about disks and write thousands of times. */
export const MEMORY = existsSync("/dev/shm") ? "/dev/shm" : tmpdir();

export function createStoreFolder(parent = tmpdir()): StoreFolder {
  const folder = mkdtempSync(join(parent, "relay-store-"));
  const path = join(folder, "relay.db");
  const closers: (() => void)[] = [];
  return {
    folder,
    path,
    open(options) {
      const store = openSqliteStore(path, { now: () => NOW, ...options });
      closers.push(() => store.close());
      return store;
    },
    raw() {
      const db = new Database(path);
      closers.push(() => db.close());
      return db;
    },
    change(work) {
      const db = new Database(path);
      work(db);
      db.close();
    },
    files: () => new Map(readdirSync(folder).map((name) => [name, readFileSync(join(folder, name))])),
    remove() {
      for (const close of closers) close();
      rmSync(folder, { recursive: true, force: true });
    },
  };
}

export function applicationForTest(sealer: Sealer, patch: Partial<Application> = {}): Application {
  const id = patch.id ?? randomUUID();
  return {
    id,
    name: "Test",
    publicKey: `pk-${id}`,
    privateKeyHash: sealPrivateKeyHash(sealer, id, createPrivateKey()),
    callerAuth: "PUBLIC_KEY",
    allowedOrigins: [],
    allowedAddresses: [],
    allowedRedirectUris: [],
    callsPerMinute: 0,
    connectionCallsPerMinute: 0,
    callRules: {},
    maxCallTokenSeconds: 0,
    accentColor: "",
    state: "ACTIVE",
    captureUntil: 0,
    createdAt: NOW,
    updatedAt: NOW,
    ...patch,
  };
}

/** A connection with the given members of a token response. */
export function connectionForTest(sealer: Sealer, key: ConnectionKey, members: object = {}): NewConnection {
  const response = parseTokenResponse(JSON.stringify({ access_token: "token", ...members }));
  return newConnectionFrom(sealer, {
    id: randomUUID(),
    key,
    response,
    defaultExpiresInS: undefined,
    originParameters: {},
    obtainedAt: NOW,
  });
}

/** A child process that runs a TypeScript file of this folder, or JavaScript text. */
export function startChild(
  source: { readonly file: string } | { readonly text: string },
  ...args: string[]
): ChildProcess {
  const here = (name: string) => fileURLToPath(new URL(name, import.meta.url));
  const command =
    "file" in source ? ["--import", "tsx", here(source.file)] : ["--input-type=module", "--eval", source.text];
  return spawn(process.execPath, [...command, ...args], { stdio: ["pipe", "pipe", "inherit"], cwd: here(".") });
}

/** Resolves with the first line that the child prints and that starts so. */
export function lineOf(child: ChildProcess, start: string): Promise<string> {
  return new Promise((resolve, reject) => {
    let text = "";
    child.once("exit", (code) => reject(new Error(`the child ended (${code}) before it said "${start}": ${text}`)));
    child.stdout?.on("data", (chunk) => {
      text += chunk;
      const line = text
        .split("\n")
        .slice(0, -1)
        .find((each) => each.startsWith(start));
      if (line !== undefined) resolve(line);
    });
  });
}

export function exitOf(child: ChildProcess): Promise<void> {
  return new Promise((resolve) => {
    if (child.exitCode !== null || child.signalCode !== null) resolve();
    else child.once("exit", () => resolve());
  });
}
