import { randomBytes } from "node:crypto";
import { closeSync, existsSync, mkdirSync, openSync, readdirSync, rmSync } from "node:fs";
import { basename, dirname, join, resolve } from "node:path";
import Database from "better-sqlite3";
import { makeFolder } from "../lib/secret-file.js";
import { isRefusedByStore } from "../model/errors.js";
import type { Settlement, Spool, UnstoredAnswer } from "../oauth/peers.js";
import { isBusy } from "./sqlite-error.js";
import { StoreOpenError } from "./store-open-error.js";

/** What opening the spool needs. */
export interface SpoolOptions {
  /** Made when it is not there; must be on this machine, since its file system's locks prove who lives. */
  readonly folder: string;
  /** The id of the store that the answers are of: a folder may serve several. */
  readonly store: string;
  /** Called with what keeps an answer, or a look at another process's file, from being done. */
  readonly onFault: (error: unknown) => void;
}

const SUFFIX = ".spool";
/** What cannot be settled is told, and tried, so seldom. Milliseconds. */
const AGAIN_MS = 10 * 60_000;
/** Room for some hundred answers, taken at the start: a disk that is full later still takes them. */
const RESERVED_BYTES = 1024 * 1024;
const SCHEMA = `
  CREATE TABLE owner (store TEXT NOT NULL) STRICT;
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

/** A spool that is locked by this process. */
interface LockedSpool {
  readonly file: string;
  readonly db: Database.Database;
}

function spoolOver(folder: string, { file, db }: LockedSpool, { store, onFault }: SpoolOptions): Spool {
  const insert = db.prepare<[string, string]>("INSERT OR REPLACE INTO answers VALUES (?, ?)");
  const remove = db.prepare<[string]>("DELETE FROM answers WHERE connection_id = ?");
  const count = db.prepare<[], number>("SELECT COUNT(*) FROM answers").pluck();
  const guarded = (work: () => void): boolean => {
    try {
      work();
      return true;
    } catch (error) {
      onFault(error);
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
          const faults = await settleOne(other, store, settlement);
          if (faults.length > 0) setAside.set(name, performance.now() + AGAIN_MS);
          faults.forEach(onFault);
        } catch (error) {
          onFault(error);
        }
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

/**
 * Resolves to what keeps its answers from being stored, if anything does; what the store does not refuse by itself must
 * not keep back the rest. Rejects when the store refuses for now, with everything left as it is.
 */
async function settleOne(file: string, store: string, { store: keep, free }: Settlement): Promise<unknown[]> {
  const db = lock(file);
  // Its owner lives, or another process settles it just now.
  if (db === undefined) return [];
  try {
    const whose = storeOf(db);
    const texts = whose === undefined ? [] : db.prepare<[], string>("SELECT answer FROM answers").pluck().all();
    if (whose !== undefined && whose !== store) return texts.length === 0 ? [] : [foreignError(file, texts.length)];
    const faults: unknown[] = [];
    for (const text of texts) {
      try {
        await keep(answerFrom(text));
      } catch (error) {
        if (isRefusedByStore(error)) throw error;
        faults.push(new Error(`An answer in ${file} cannot be stored; it stays there`, { cause: error }));
      }
    }
    await free(ownerOf(file));
    if (faults.length === 0) removeFile(file);
    return faults;
  } finally {
    db.close();
  }
}

function foreignError(file: string, count: number): Error {
  return new Error(
    `${file} holds ${count} answers for another database: start a relay with that one, or remove the file`,
  );
}

/** How many answers of this store wait in spools whose owners are gone, for one to store them that starts. */
export function countLeftAnswers(folder: string, store: string): number {
  if (!existsSync(folder)) return 0;
  let count = 0;
  for (const name of readdirSync(folder)) {
    const db = name.endsWith(SUFFIX) ? lock(join(folder, name)) : undefined;
    if (db === undefined) continue;
    if (storeOf(db) === store) count += db.prepare<[], number>("SELECT COUNT(*) FROM answers").pluck().get() ?? 0;
    db.close();
  }
  return count;
}

/** Undefined for one whose owner ended before it was made. */
function storeOf(db: Database.Database): string | undefined {
  const isMade = db.prepare("SELECT 1 FROM sqlite_schema WHERE name = 'reserve'").get() !== undefined;
  return isMade ? db.prepare<[], string>("SELECT store FROM owner").pluck().get() : undefined;
}

function createOwn(folder: string, store: string): LockedSpool | undefined {
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
    db.prepare("INSERT INTO owner VALUES (?)").run(store);
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

/** Tokens are sealed, so that the file tells no more than the database does. */
function textFrom({ connection, tokens }: UnstoredAnswer): string {
  const { id, applicationId, userId, providerName, originParameters, state, trouble, version } = connection;
  const bytes = (value: Uint8Array | undefined) => value && Buffer.from(value).toString("base64");
  return JSON.stringify({
    connection: { id, applicationId, userId, providerName, originParameters, state, trouble, version },
    tokens: {
      ...tokens,
      accessToken: bytes(tokens.accessToken),
      refreshToken: bytes(tokens.refreshToken),
      lateRefreshToken: bytes(tokens.lateRefreshToken),
      idToken: bytes(tokens.idToken),
    },
  });
}

function answerFrom(text: string): UnstoredAnswer {
  const { connection, tokens } = JSON.parse(text);
  const bytes = (value: string | undefined) => (value === undefined ? undefined : Buffer.from(value, "base64"));
  const sealed = {
    accessToken: bytes(tokens.accessToken),
    refreshToken: bytes(tokens.refreshToken),
    lateRefreshToken: bytes(tokens.lateRefreshToken),
    idToken: bytes(tokens.idToken),
  };
  return {
    connection: { trouble: undefined, ...connection },
    tokens: { scope: undefined, expiresAt: undefined, ...tokens, ...sealed },
  };
}
