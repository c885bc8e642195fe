import { open, readFile, realpath, stat } from "node:fs/promises";
import { setTimeout as delay } from "node:timers/promises";
import type { Database } from "better-sqlite3";
import { createSecretFile, replaceWhole } from "../lib/secret-file.js";
import { createKeyLine, KeyFileError, parseKeyFile } from "./key-file.js";

/** How long another process may take to add its key, in milliseconds: it writes two small files. */
const LOCK_TIMEOUT_MS = 5_000;
const LOCK_RETRY_MS = 20;

/** Creates a key file with one new key, mode 0600. Leaves a file alone that another process created meanwhile. */
export async function createKeyFile(path: string): Promise<void> {
  await createSecretFile(path, createKeyLine().line);
}

/**
 * Puts a new key in front of a key file, so that it becomes the current one, and resolves to its id. The file is
 * replaced as a whole and keeps its owner and mode. A process that was killed here has left the old file or the new one,
 * and nothing that stops the next.
 *
 * Rejects with KeyFileError when the file is malformed or cannot be replaced.
 */
export async function addKey(path: string): Promise<string> {
  const { id, line } = createKeyLine();
  try {
    const target = await realpath(path);
    await alone(target, async () => {
      const text = await readFile(target, "utf8");
      parseKeyFile(text, target);
      await replaceWhole(target, line + text, await stat(target));
    });
  } catch (cause) {
    throw cause instanceof KeyFileError ? cause : new KeyFileError(path, problemOf(cause), { cause });
  }
  return id;
}

/**
 * Runs `work` while no other process does so for this file: two at once would lose one of the keys, and with it whatever
 * was sealed under it. It holds SQLite's lock on an empty file beside it, which the system releases when a process is
 * killed. That file stays: a lock on a deleted one would keep nobody out.
 */
async function alone(target: string, work: () => Promise<void>): Promise<void> {
  const { default: Database } = await import("better-sqlite3");
  const name = `${target}.lock`;
  await makeLike(target, name);
  const lock = new Database(name, { timeout: 0 });
  try {
    await take(lock);
    await work();
  } finally {
    lock.close();
  }
}

/** The event loop is not held meanwhile. */
async function take(lock: Database): Promise<void> {
  for (const until = performance.now() + LOCK_TIMEOUT_MS; ; await delay(LOCK_RETRY_MS)) {
    try {
      lock.exec("BEGIN EXCLUSIVE");
      return;
    } catch (error) {
      if (!isBusy(error) || performance.now() > until) throw error;
    }
  }
}

/** What root makes must not keep the owner of the key file out. */
async function makeLike(target: string, name: string): Promise<void> {
  const file = await open(name, "a", 0o600);
  try {
    const [own, { uid, gid }] = [await file.stat(), await stat(target)];
    if (own.uid !== uid || own.gid !== gid) await file.chown(uid, gid);
  } finally {
    await file.close();
  }
}

function isBusy(error: unknown): boolean {
  return (error as NodeJS.ErrnoException).code === "SQLITE_BUSY";
}

function problemOf(cause: unknown): string {
  if (isBusy(cause)) return "a key is being added by another process; try again";
  return `cannot be replaced (${(cause as NodeJS.ErrnoException).code ?? "unknown error"})`;
}
