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

/** What opening the spool needs. */
export interface SpoolOptions {
  /** Made when it is not there; must be on this machine, since its file system's locks prove who lives. */
  readonly folder: string;
  /** Of which store the answers are: a folder may serve several. */
  readonly store: SpooledStore;
  /** Called with what keeps an answer, or a look at another process's file, from being done. */
  readonly onFault: (error: unknown) => void;
  /** Called, seldom, for a spool whose answers stay there: those of another store, or some that do not open. */
  readonly onLeft: (file: string, answers: number, why: "other store" | "unusable") => void;
}

/** Which store, and where it is. */
export interface SpooledStore {
  readonly id: string;
  /** The database file; undefined for one that is no file. While it is there, another file with its id is a copy. */
  readonly path: string | undefined;
}

const SUFFIX = ".spool";
/** What cannot be settled is told, and tried, so seldom. Milliseconds. */
const AGAIN_MS = 10 * 60_000;
/** Room for some hundred answers, taken at the start: a disk that is full later still takes them. */
const RESERVED_BYTES = 1024 * 1024;
const SCHEMA = `
  CREATE TABLE owner (store TEXT NOT NULL, path TEXT) STRICT;
  CREATE TABLE answers (connection_id TEXT NOT NULL PRIMARY KEY, answer TEXT NOT NULL) STRICT, WITHOUT ROWID;
  CREATE TABLE reserve (bytes BLOB NOT NULL) STRICT;
  INSERT INTO reserve VALUES (zeroblob(${RESERVED_BYTES}));`;

/**
 * Opens this process's spool: a small SQLite file of its own, locked for as long as the process lives. The kernel frees
 * the lock when the process ends, however that happens, so another process that can lock the file knows that its owner
 * is gone, and finds in it what that could not store. Throws StoreOpenError when the folder cannot be written.
 */
export function openSpool(options: SpoolOptions): Spool {
  const folder = resolve(options.folder);
  try {
    makeFolder(options.folder);
    // As for other files: a folder around it that is not there is a typing error, or a volume that is not mounted.
    if (existsSync(dirname(folder))) mkdirSync(folder, { recursive: true, mode: 0o700 });
    // Another process may take a file that is not locked yet for one that was left behind.
    let own = createOwn(folder, options.store);
    while (own === undefined) own = createOwn(folder, options.store);
    return spoolOver(folder, own, options);
  } catch (error) {
    const { code = "unknown error" } = error as { code?: string };
    throw new StoreOpenError(folder, `cannot be written (${code}); check RELAY_SPOOL, its disk and its owner`, {
      cause: error,
    });
  }
}

/** Where the answers of a store are kept, and how its spools name it. @param id the store's. */
export function spoolPlaceOf(
  { database, spool = defaultSpool(database) }: SpoolConfig,
  id: string,
): Pick<SpoolOptions, "folder" | "store"> {
  return { folder: spool, store: { id, path: database.kind === "sqlite" ? realpathSync(database.path) : undefined } };
}

/** What of a configuration says where. */
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
  /** What fails is tried again and again, and told once. */
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
  /** False also when that cannot be told. */
  const isEmpty = () => {
    let held: number | undefined;
    guarded(() => {
      held = count.get();
    });
    return held === 0;
  };
  /** When what cannot be settled is looked at again, by the file's name, in milliseconds of `performance.now()`. */
  const setAside = new Map<string, number>();
  return {
    owner: ownerOf(file),
    keep: (answer) => guarded(() => void insert.run(answer.connection.id, textFrom(answer))),
    // One that stays is found to be stored when it is stored again.
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

/** What stays in a spool, and why. */
type Left = { readonly answers: number; readonly why: "other store" | "unusable" } | undefined;

/**
 * Resolves to what stays, if anything does: an answer that cannot be used keeps back no other one, but the leases, until
 * they end by time. Rejects when the store refuses for now, with what is not stored left as it is.
 */
async function settleOne(
  file: string,
  store: SpooledStore,
  { store: keep, free, onFault }: Settlement & Pick<SpoolOptions, "onFault">,
): Promise<Left> {
  const db = lock(file);
  // Its owner lives, or another process settles it just now.
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

/** A file that was moved, or restored in place, is the same store; a copy beside it is another one. */
function isSame(whose: SpooledStore, own: SpooledStore): boolean {
  if (whose.id !== own.id) return false;
  return whose.path === undefined || whose.path === own.path || !existsSync(whose.path);
}

interface AnswerRow {
  readonly connection_id: string;
  readonly answer: string;
}

/** How many answers of this store wait in spools whose owners are gone, for one to store them that starts. */
export function countLeftAnswers({ folder, store }: Pick<SpoolOptions, "folder" | "store">): number {
  if (!existsSync(folder)) return 0;
  let count = 0;
  for (const name of readdirSync(folder)) {
    const db = name.endsWith(SUFFIX) ? lock(join(folder, name)) : undefined;
    if (db === undefined) continue;
    const whose = storeOf(db);
    if (whose !== undefined && isSame(whose, store))
      count += db.prepare<[], number>("SELECT COUNT(*) FROM answers").pluck().get() ?? 0;
    db.close();
  }
  return count;
}

/** Undefined for one whose owner ended before it was made. */
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
  // Its pages stay in the file, and what the journal took stays in the journal.
  db.exec("DELETE FROM reserve");
  return { file, db };
}

/**
 * Opens a spool and keeps its lock until it is closed; undefined while another process has it, or when the file is gone.
 * A journal that is kept needs no room when the disk is full; FULL: what was kept survives a power loss.
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

/** What of an answer is sealed, so that the file tells no more than the database does. */
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
