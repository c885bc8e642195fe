import { createSecretKey, type KeyObject, randomBytes } from "node:crypto";
import { existsSync, readFileSync, statSync } from "node:fs";
import { open, readFile, realpath, stat } from "node:fs/promises";
import { setTimeout as delay } from "node:timers/promises";
import type { Database } from "better-sqlite3";
import { codeOf, createSecretFile, replaceWhole } from "../lib/secret-file.js";

/** The keys that seal and open stored values. */
export interface Keyring {
  /** The key that new values are sealed under. */
  readonly current: SealKey;
  /** Every key, the current one first. */
  readonly all: readonly SealKey[];
  /** The key with this id. May throw KeyFileError for an unknown one when the file can no longer be read. */
  find(id: string): SealKey | undefined;
}

/**
 * Loads a key file, and follows its changes: for each value that is not sealed under the current key it checks the
 * file again, so that a running relay can open what `relay key rotate` sealed under a new key, and seals under it from
 * then on. The file is read again only if it has changed (such a value costs one `stat()`), so reads need no rate
 * limit, and no call fails because of one.
 *
 * Rejects with KeyFileError when the file is missing, malformed or unreadable. Without `mustExist`, a missing file is
 * created with a new key; in production it must exist, to notice a lost file.
 */
export async function loadKeyring(path: string, { mustExist }: { readonly mustExist: boolean }): Promise<Keyring> {
  if (!mustExist && !existsSync(path)) await createOrThrow(path);
  let seen = identityOf(path);
  let [current, keys] = keysFrom(readText(path), path);
  const follow = () => {
    const identity = identityOf(path);
    if (identity === seen) return;
    // A file that cannot be read now may be readable later, unchanged: with a free descriptor, or after a chown.
    const text = readText(path);
    seen = identity;
    const [newest, fresh] = keysFrom(text, path);
    // Loaded keys stay: a line that was removed or altered takes effect at the next start.
    keys = new Map([...fresh, ...keys]);
    current = keys.get(newest.id) ?? newest;
  };
  return {
    get current() {
      return current;
    },
    get all() {
      return [...keys.values()];
    },
    find(id) {
      const known = keys.get(id);
      if (known === current) return known;
      try {
        follow();
      } catch (error) {
        // A known key opens its values whatever the file is by now.
        if (known === undefined) throw error;
      }
      return keys.get(id);
    },
  };
}

function keysFrom(text: string, path: string): [current: SealKey, all: ReadonlyMap<string, SealKey>] {
  const keys = parseKeyFile(text, path);
  return [keys[0], new Map(keys.map((key) => [key.id, key]))];
}

function readText(path: string): string {
  try {
    return readFileSync(path, "utf8");
  } catch (cause) {
    throw unreadable(path, cause);
  }
}

/** Changes whenever the file does: a replaced file has a new inode, an edited one a new time or size. */
function identityOf(path: string): string {
  try {
    const { ino, mtimeNs, size } = statSync(path, { bigint: true });
    return `${ino} ${mtimeNs} ${size}`;
  } catch (cause) {
    throw unreadable(path, cause);
  }
}

/** Creates a key file with one new key, mode 0600. Does not touch a file that another process created meanwhile. */
async function createOrThrow(path: string): Promise<void> {
  try {
    await createSecretFile(path, createKeyLine().line);
  } catch (cause) {
    throw new KeyFileError(path, `cannot be created (${codeOf(cause)}); check RELAY_KEY_FILE`, { cause });
  }
}

function unreadable(path: string, cause: unknown): KeyFileError {
  const code = codeOf(cause);
  const problem =
    code === "ENOENT"
      ? "does not exist; restore it, or check RELAY_KEY_FILE (with NODE_ENV=production it is never created)"
      : `cannot be read (${code}); check RELAY_KEY_FILE`;
  return new KeyFileError(path, problem, { cause });
}

/** A key of the ring. A KeyObject prints without its bytes. */
export interface SealKey {
  readonly id: string;
  readonly key: KeyObject;
}

/** A key file that cannot be used. The message names file and line, never content. */
export class KeyFileError extends Error {
  constructor(path: string, problem: string, options?: { cause?: unknown }) {
    super(`Key file ${path}: ${problem}`, options);
    this.name = "KeyFileError";
  }
}

const KEY_BYTES = 32;
const ID = /^[A-Za-z0-9._-]{1,64}$/;
/** 32 bytes in base64 (RFC 4648 section 4): 43 characters and one `=`. */
const BASE64 = /^[A-Za-z0-9+/]{43}=$/;

/**
 * Parses a key file's text: `keyId:base64` of 32 bytes, one per line, the current key first. Empty lines and lines that
 * start with `#` are skipped. `path` is only for messages.
 */
export function parseKeyFile(text: string, path: string): readonly [SealKey, ...SealKey[]] {
  const keys = new Map<string, SealKey>();
  for (const [index, line] of text.split(/\r?\n/).entries()) {
    if (line === "" || line.startsWith("#")) continue;
    const key = parseLine(line);
    if (typeof key === "string") throw new KeyFileError(path, `line ${index + 1}: ${key}`);
    if (keys.has(key.id)) throw new KeyFileError(path, `line ${index + 1}: this key id is already on an earlier line`);
    keys.set(key.id, key);
  }
  const [current, ...others] = keys.values();
  if (current === undefined) throw new KeyFileError(path, "has no key; each line must be keyId:base64 of 32 bytes");
  return [current, ...others];
}

/** A new random key as a line of the file. */
export function createKeyLine(): { readonly id: string; readonly line: string } {
  const id = randomBytes(6).toString("hex");
  return { id, line: `${id}:${randomBytes(KEY_BYTES).toString("base64")}\n` };
}

/** The key of one line, or what is wrong with it. */
function parseLine(line: string): SealKey | string {
  const colon = line.indexOf(":");
  if (colon === -1) return "must be keyId:base64";
  const id = line.slice(0, colon);
  if (!ID.test(id)) return "the key id must be 1 to 64 letters, digits, '.', '_' or '-'";
  const encoded = line.slice(colon + 1);
  const bytes = Buffer.from(encoded, "base64");
  // The second check refuses stray bits in the last character, so that a key has only one spelling.
  if (!BASE64.test(encoded) || bytes.toString("base64") !== encoded) return "the key must be 32 bytes in base64";
  return { id, key: createSecretKey(bytes) };
}

/** How long to wait while another process adds a key, in milliseconds: it writes two small files. */
const LOCK_TIMEOUT_MS = 5_000;
const LOCK_RETRY_MS = 20;

/**
 * Adds a new key at the top of a key file, so that it becomes the current one, and resolves to its id. The file is
 * replaced as a whole, and keeps its owner and mode. A process that is killed here leaves either the old file or the
 * new one, and nothing that blocks the next process.
 *
 * Rejects with KeyFileError when the file is malformed or cannot be replaced.
 */
export async function addKey(path: string, { id, line } = createKeyLine()): Promise<string> {
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
 * Runs `work` while no other process does so for this file: two at once would lose one of the keys, and all values
 * sealed under it. Uses SQLite's lock on an empty file beside the key file, which the system releases when a process is
 * killed. The lock file is never deleted: a lock on a deleted file would exclude nobody.
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

/** Takes the lock without blocking the event loop. */
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

/** Creates the lock file with the key file's owner, so that a file created by root does not lock the owner out. */
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
  if (isBusy(cause)) return "another process is adding a key; try again";
  return `cannot be replaced (${codeOf(cause)})`;
}
