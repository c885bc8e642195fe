import { existsSync, readFileSync, statSync } from "node:fs";
import { createKeyFile, KeyFileError, parseKeyFile, type SealKey } from "./key-file.js";

/** The keys that seal and open stored values. */
export interface Keyring {
  /** The key that new values are sealed under. */
  readonly current: SealKey;
  /** The key of this id. May throw KeyFileError when the file was changed and cannot be read any more. */
  find(id: string): SealKey | undefined;
}

/** How to load a key file. */
export interface KeyringOptions {
  /** Reject when there is no file instead of creating it with a new key: production, where a lost file must be noticed. */
  readonly mustExist: boolean;
}

/**
 * Loads a key file, and follows it: an id that is not in the ring makes it look at the file again, so that a running
 * relay opens what `relay key rotate` sealed under a new key. The file is read again only when it was changed since
 * (a value that names a bogus key costs one stat), so no wait is needed between two reads and no call fails meanwhile.
 *
 * Rejects with KeyFileError when the file is missing (see `mustExist`), malformed or unreadable.
 */
export async function loadKeyring(path: string, { mustExist }: KeyringOptions): Promise<Keyring> {
  if (!mustExist && !existsSync(path)) await createOrThrow(path);
  let seen = identityOf(path);
  let [current, keys] = readKeys(path);
  return {
    get current() {
      return current;
    },
    find(id) {
      const known = keys.get(id);
      if (known !== undefined) return known;
      const identity = identityOf(path);
      if (identity === seen) return undefined;
      seen = identity;
      const [newest, fresh] = readKeys(path);
      // Keys in use stay as they are: a line that was taken out or altered counts from the next start on.
      keys = new Map([...fresh, ...keys]);
      current = keys.get(newest.id) ?? newest;
      return keys.get(id);
    },
  };
}

function readKeys(path: string): [current: SealKey, all: ReadonlyMap<string, SealKey>] {
  const keys = parseKeyFile(readText(path), path);
  return [keys[0], new Map(keys.map((key) => [key.id, key]))];
}

function readText(path: string): string {
  try {
    return readFileSync(path, "utf8");
  } catch (cause) {
    throw unreadable(path, cause);
  }
}

/** Changes whenever the file does: a replaced file has another inode, an edited one another time or size. */
function identityOf(path: string): string {
  try {
    const { ino, mtimeNs, size } = statSync(path, { bigint: true });
    return `${ino} ${mtimeNs} ${size}`;
  } catch (cause) {
    throw unreadable(path, cause);
  }
}

async function createOrThrow(path: string): Promise<void> {
  try {
    await createKeyFile(path);
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

function codeOf(error: unknown): string {
  return (error as NodeJS.ErrnoException).code ?? "unknown error";
}
