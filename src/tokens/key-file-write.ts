import { type FileHandle, readFile, realpath, rename, stat } from "node:fs/promises";
import { dirname } from "node:path";
import { createSecretFile, syncFolder, writeNewFile } from "../secret-file.js";
import { createKeyLine, KeyFileError, parseKeyFile } from "./key-file.js";

/** Creates a key file with one new key, mode 0600. Leaves a file alone that another process created meanwhile. */
export async function createKeyFile(path: string): Promise<void> {
  await createSecretFile(path, createKeyLine().line);
}

/**
 * Puts a new key in front of a key file, so that it becomes the current one, and resolves to its id. The file is
 * replaced as a whole and keeps its owner and mode.
 *
 * Rejects with KeyFileError when the file is malformed or another process is adding a key: two at once would lose one
 * of the keys, and with it whatever was sealed under it.
 */
export async function addKey(path: string): Promise<string> {
  const { id, line } = createKeyLine();
  try {
    const target = await realpath(path);
    const draft = `${target}.new`;
    await writeNewFile(draft, (file) => fillWithKeyInFront(file, target, line));
    await rename(draft, target);
    await syncFolder(dirname(target));
  } catch (cause) {
    throw cause instanceof KeyFileError ? cause : new KeyFileError(path, problemOf(cause), { cause });
  }
  return id;
}

async function fillWithKeyInFront(file: FileHandle, target: string, line: string): Promise<void> {
  const text = await readFile(target, "utf8");
  parseKeyFile(text, target);
  const { uid, gid, mode } = await stat(target);
  await file.writeFile(line + text);
  await keepOwner(file, uid, gid);
  await file.chmod(mode & 0o777);
}

function problemOf(cause: unknown): string {
  const { code } = cause as NodeJS.ErrnoException;
  return code === "EEXIST"
    ? "a key is being added by another process; if that is not so, delete the file of this name with .new and try again"
    : `cannot be replaced (${code ?? "unknown error"})`;
}

/** Root that rotates for another user must leave the file readable to that user. */
async function keepOwner(file: FileHandle, uid: number, gid: number): Promise<void> {
  const own = await file.stat();
  if (own.uid !== uid || own.gid !== gid) await file.chown(uid, gid);
}
