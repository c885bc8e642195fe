import { randomBytes } from "node:crypto";
import { closeSync, existsSync, mkdirSync, openSync, readdirSync, realpathSync, rmSync } from "node:fs";
import { basename, dirname, join, resolve } from "node:path";
import Database from "better-sqlite3";
import { type DatabaseLocation, defaultSpool } from "../config/database-location.js";
import { makeFolder } from "../lib/secret-file.js";
import { isRefusedByStore } from "../model/errors.js";
import type { Settlement, Spool, UnstoredAnswer } from "../oauth/peers.js";
import { StoreOpenError } from "./database.js";
import { isBusy } from "./sqlite-error.js";

/** How to open the spool. */
export interface SpoolOptions {
  /** Created if missing. Must be on a local disk, since file locks prove which processes live. */
  readonly folder: string;
  /** The store that the answers belong to: a folder may serve several. */
  readonly store: SpooledStore;
  /** Called with errors of keeping an answer, or of reading another process's file. */
  readonly onFault: (error: unknown) => void;
  /**
   * Called, at most every ten minutes each, for spools whose answers stay: those of another store, or unusable ones.
   */
  readonly onLeft: (file: string, answers: number, why: "other store" | "unusable") => void;
}

/** A store's id and place. */
export interface SpooledStore {
  readonly id: string;
  /** The database file; undefined for PostgreSQL. While the file exists, another one with the same id is a copy. */
  readonly path: string | undefined;
}

const SUFFIX = ".spool";
/** How soon a spool that could not be settled is tried and reported again. Milliseconds. */
const AGAIN_MS = 10 * 60_000;
/** Room for some hundred answers, reserved at start, so that they can be kept even when the disk is full. */
const RESERVED_BYTES = 1024 * 1024;
const SCHEMA = `
  CREATE TABLE owner (store TEXT NOT NULL, path TEXT) STRICT;
  CREATE TABLE answers (connection_id TEXT NOT NULL PRIMARY KEY, answer TEXT NOT NULL) STRICT, WITHOUT ROWID;
  CREATE TABLE reserve (bytes BLOB NOT NULL) STRICT;
  INSERT INTO reserve VALUES (zeroblob(${RESERVED_BYTES}));`;

/**
 * Opens this process's spool: a small SQLite file of its own, locked for as long as the process lives. The kernel
 * releases the lock however the process ends. So a process that can lock the file knows that its owner is gone, and
 * finds in it the answers that the owner could not store. Throws StoreOpenError when the folder cannot be written.
 */
export function openSpool(options: SpoolOptions): Spool {
  const folder = resolve(options.folder);
  try {
    makeFolder(options.folder);
    // As for other files: a missing parent folder means a typing error, or a volume that is not mounted.
    if (existsSync(dirname(folder))) mkdirSync(folder, { recursive: true, mode: 0o700 });
    // Before the file is locked, another process may take it for one that was left behind, and remove it.
    let own = createOwn(folder, options.store);
    while (own === undefined) own = createOwn(folder, options.store);
    return spoolOver(folder, own, options);
  } catch (error) {
    const { code = "unknown error" } = error as { code?: string };
    throw new StoreOpenError(folder, `cannot be written to (${code}); check RELAY_SPOOL, its disk and its owner`, {
      cause: error,
    });
  }
}

/** The folder and the store for the spools of a configuration. @param id the store's. */
export function spoolPlaceOf(
  { database, spool = defaultSpool(database) }: SpoolConfig,
  id: string,
): Pick<SpoolOptions, "folder" | "store"> {
  return { folder: spool, store: { id, path: database.kind === "sqlite" ? realpathSync(database.path) : undefined } };
}

/** The part of the configuration that names the places. */
interface SpoolConfig {
  readonly database: DatabaseLocation;
  readonly spool?: string | undefined;
}

/** A spool that is locked by this process. */
interface LockedSpool {
  readonly file: string;
  readonly db: Database.Database;
}

function spoolOver(folder: string, { file, db }: LockedSpool, { store, onFault, onLeft }: SpoolOptions): Spool {
  const insert = db.prepare<[string, string]>("INSERT OR REPLACE INTO answers VALUES (?, ?)");
  const remove = db.prepare<[string]>("DELETE FROM answers WHERE connection_id = ?");
  const count = db.prepare<[], number>("SELECT COUNT(*) FROM answers").pluck();
  let isFailing = false;
  /** Runs `work` and returns whether it succeeded. Repeated failures are reported only once. */
  const guarded = (work: () => void): boolean => {
    try {
      work();
      isFailing = false;
      return true;
    } catch (error) {
      if (!isFailing) onFault(error);
      isFailing = true;
      return false;
    }
  };
  /** Whether the spool holds no answers; false also when it cannot be read. */
  const isEmpty = () => {
    let held: number | undefined;
    guarded(() => {
      held = count.get();
    });
    return held === 0;
  };
  /** When to retry spools that could not be settled, by file name, in milliseconds of `performance.now()`. */
  const setAside = new Map<string, number>();
  return {
    owner: ownerOf(file),
    keep: (answer) => guarded(() => void insert.run(answer.connection.id, textFrom(answer))),
    // If the answer stays, storing it again finds that it is already stored.
    drop: ({ connection }) => void guarded(() => void remove.run(connection.id)),
    knows: (owner) => existsSync(fileOf(folder, owner)),
    async settleGone(settlement) {
      const files = readdirSync(folder).filter((name) => name.endsWith(SUFFIX));
      for (const name of setAside.keys()) if (!files.includes(name)) setAside.delete(name);
      for (const name of files) {
        const other = join(folder, name);
        if (other === file || (setAside.get(name) ?? 0) > performance.now()) continue;
        try {
          const left = await settleOne(other, store, { ...settlement, onFault });
          if (left === undefined) continue;
          onLeft(other, left.answers, left.why);
        } catch (error) {
          onFault(error);
          if (isRefusedByStore(error)) continue;
        }
        setAside.set(name, performance.now() + AGAIN_MS);
      }
    },
    async close(free) {
      const isDone =
        isEmpty() &&
        (await free(ownerOf(file)).then(
          () => true,
          () => false,
        ));
      if (isDone) guarded(() => removeFile(file));
      db.close();
    },
  };
}

/** The answers that stay in a spool, and why. */
type Left = { readonly answers: number; readonly why: "other store" | "unusable" } | undefined;

/**
 * Settles the spool of a process that is gone. Resolves to what stays, if anything: an unusable answer does not keep
 * back other answers, but the leases stay until they expire. Rejects when the store refuses for now; the answers that
 * are not stored then stay in the spool.
 */
async function settleOne(
  file: string,
  store: SpooledStore,
  { store: keep, free, onFault }: Settlement & Pick<SpoolOptions, "onFault">,
): Promise<Left> {
  const db = lock(file);
  // Its owner lives, or another process is settling it.
  if (db === undefined) return undefined;
  try {
    const whose = storeOf(db);
    const rows =
      whose === undefined ? [] : db.prepare<[], AnswerRow>("SELECT connection_id, answer FROM answers").all();
    if (whose !== undefined && !isSame(whose, store))
      return rows.length === 0 ? undefined : { answers: rows.length, why: "other store" };
    let unusable = 0;
    for (const { connection_id: id, answer } of rows) {
      try {
        await keep(answerFrom(answer));
        db.prepare<[string]>("DELETE FROM answers WHERE connection_id = ?").run(id);
      } catch (error) {
        if (isRefusedByStore(error)) throw error;
        onFault(error);
        unusable += 1;
      }
    }
    if (unusable > 0) return { answers: unusable, why: "unusable" };
    await free(ownerOf(file));
    removeFile(file);
    return undefined;
  } finally {
    db.close();
  }
}

/** A database file that was moved, or restored in place, is the same store; a copy beside the original is not. */
function isSame(whose: SpooledStore, own: SpooledStore): boolean {
  if (whose.id !== own.id) return false;
  return whose.path === undefined || whose.path === own.path || !existsSync(whose.path);
}

interface AnswerRow {
  readonly connection_id: string;
  readonly answer: string;
}

/**
 * Counts the answers of this store in spools whose owners are gone; the next process that starts stores them. Throws
 * StoreOpenError, which names the file, when one cannot be read.
 */
export function countLeftAnswers({ folder, store }: Pick<SpoolOptions, "folder" | "store">): number {
  if (!existsSync(folder)) return 0;
  let count = 0;
  for (const name of readdirSync(folder)) {
    if (name.endsWith(SUFFIX)) count += countAnswersIn(join(folder, name), store);
  }
  return count;
}

function countAnswersIn(file: string, store: SpooledStore): number {
  let db: Database.Database | undefined;
  try {
    db = lock(file);
    const whose = db && storeOf(db);
    if (db === undefined || whose === undefined || !isSame(whose, store)) return 0;
    return db.prepare<[], number>("SELECT COUNT(*) FROM answers").pluck().get() ?? 0;
  } catch (error) {
    const { code = "unknown error" } = error as { code?: string };
    const problem = "it may hold answers that are not stored yet. Check its owner, or move it elsewhere and keep it";
    throw new StoreOpenError(file, `cannot be read (${code}); ${problem}`, { cause: error });
  } finally {
    db?.close();
  }
}

/** The store that a spool belongs to; undefined when its owner ended before the schema was created. */
function storeOf(db: Database.Database): SpooledStore | undefined {
  const isMade = db.prepare("SELECT 1 FROM sqlite_schema WHERE name = 'reserve'").get() !== undefined;
  const row = isMade
    ? db.prepare<[], { store: string; path: string | null }>("SELECT store, path FROM owner").get()
    : undefined;
  return row && { id: row.store, path: row.path ?? undefined };
}

function createOwn(folder: string, store: SpooledStore): LockedSpool | undefined {
  const file = fileOf(folder, randomBytes(8).toString("hex"));
  closeSync(openSync(file, "wx", 0o600));
  const db = lock(file);
  if (db === undefined) return undefined;
  if (!existsSync(file)) {
    db.close();
    return undefined;
  }
  db.transaction(() => {
    db.exec(SCHEMA);
    db.prepare("INSERT INTO owner VALUES (?, ?)").run(store.id, store.path ?? null);
  })();
  // The freed pages stay in the file, and the journal keeps its size: both are the reserved room.
  db.exec("DELETE FROM reserve");
  return { file, db };
}

/**
 * Opens a spool and holds its lock until it is closed; undefined when another process holds the lock, or the file is
 * gone. journal_mode PERSIST: the journal needs no new room when the disk is full. synchronous FULL: answers survive a
 * power loss.
 */
function lock(file: string): Database.Database | undefined {
  let db: Database.Database | undefined;
  try {
    db = new Database(file, { timeout: 0, fileMustExist: true });
    db.pragma("trusted_schema = OFF");
    db.pragma("locking_mode = EXCLUSIVE");
    db.exec("BEGIN EXCLUSIVE; COMMIT");
    db.pragma("journal_mode = PERSIST");
    db.pragma("synchronous = FULL");
    return db;
  } catch (error) {
    db?.close();
    if (isBusy(error) || !existsSync(file)) return undefined;
    throw error;
  }
}

function removeFile(file: string): void {
  for (const each of [file, `${file}-journal`]) rmSync(each, { force: true });
}

function fileOf(folder: string, owner: string): string {
  return join(folder, owner + SUFFIX);
}

function ownerOf(file: string): string {
  return basename(file, SUFFIX);
}

/** The sealed members of an answer, so that the file reveals no more than the database does. */
const SEALED = ["accessToken", "refreshToken", "lateRefreshToken", "idToken"] as const;

function textFrom({ connection, tokens }: UnstoredAnswer): string {
  const { id, applicationId, userId, providerName, originParameters, state, trouble, version } = connection;
  const texts = SEALED.map((name) => [name, tokens[name] && Buffer.from(tokens[name]).toString("base64")]);
  return JSON.stringify({
    connection: { id, applicationId, userId, providerName, originParameters, state, trouble, version },
    tokens: { ...tokens, ...Object.fromEntries(texts) },
  });
}

function answerFrom(text: string): UnstoredAnswer {
  const { connection, tokens } = JSON.parse(text);
  const bytes = SEALED.map((name) => [
    name,
    tokens[name] === undefined ? undefined : Buffer.from(tokens[name], "base64"),
  ]);
  return {
    connection: { trouble: undefined, ...connection },
    tokens: { scope: undefined, expiresAt: undefined, ...tokens, ...Object.fromEntries(bytes) },
  };
}
