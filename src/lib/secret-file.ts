import { randomBytes } from "node:crypto";
import { closeSync, mkdirSync, openSync } from "node:fs";
import { chmod, chown, link, lstat, open, readdir, rename, unlink, writeFile } from "node:fs/promises";
import { basename, dirname, isAbsolute, join } from "node:path";

/** Owner and mode for a file that is replaced. */
export interface FileOwner {
  readonly uid: number;
  readonly gid: number;
  readonly mode: number;
}

/** Suffix of a file's draft, and of the files that SQLite creates beside a draft. */
const DRAFT = /^\.[0-9a-f]{12}\.draft(?:-journal|-wal|-shm)?$/;

/**
 * Creates a file of secrets with mode 0600, and the folder of a relative name. Resolves to whether this process created
 * it. A file that exists already, or that another process creates meanwhile, is left alone.
 */
export async function createSecretFile(path: string, text: string): Promise<boolean> {
  makeFolder(path);
  // "r+" fails if the draft was removed: a new file would be readable by others.
  return createWhole(path, (draft) => writeFile(draft, text, { flag: "r+" }));
}

/**
 * Creates a file with mode 0600 atomically: writes a draft beside it, syncs that to disk, then links it to the name,
 * which fails when the name is taken. A killed process leaves its draft, which the next one removes. Resolves to
 * whether the name was free.
 *
 * @param fill writes the draft of the given name, which exists and is empty.
 * @param onDraft called with that name before the draft exists.
 */
export async function createWhole(
  path: string,
  fill: (draft: string) => Promise<void>,
  onDraft?: (draft: string) => void,
): Promise<boolean> {
  return withDraft(path, fill, (draft) => linked(draft, path), onDraft).catch(async (error: NodeJS.ErrnoException) => {
    // The process that created the file first has removed the drafts of the others.
    if (error.code === "ENOENT" && (await isTaken(path))) return false;
    throw error;
  });
}

/** Replaces a file atomically, also by a draft; the new file has the given owner and mode. */
export async function replaceWhole(path: string, text: string, { uid, gid, mode }: FileOwner): Promise<void> {
  await withDraft(
    path,
    async (draft) => {
      await writeFile(draft, text);
      const own = await lstat(draft);
      // When root writes for another user, that user must still be able to read the file.
      if (own.uid !== uid || own.gid !== gid) await chown(draft, uid, gid);
      await chmod(draft, mode & 0o777);
    },
    async (draft) => {
      await rename(draft, path);
      return true;
    },
  );
}

/**
 * Creates the folder of a relative name such as `data/relay.key`, if its parent exists. The folder of an absolute name
 * must exist: a missing one is a typing error, or a volume that is not mounted. Throws the system's error.
 */
export function makeFolder(path: string): void {
  if (isAbsolute(path)) return;
  try {
    mkdirSync(dirname(path), { mode: 0o700 });
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== "EEXIST") throw error;
  }
}

async function withDraft(
  path: string,
  fill: (draft: string) => Promise<void>,
  name: (draft: string) => Promise<boolean>,
  onDraft: (draft: string) => void = () => {},
): Promise<boolean> {
  const draft = `${path}.${randomBytes(6).toString("hex")}.draft`;
  onDraft(draft);
  // Synchronous, so that a signal handler that removes the draft knows its name before it exists.
  closeSync(openSync(draft, "wx", 0o600));
  let isNamed: boolean;
  try {
    await fill(draft);
    await sync(draft);
    isNamed = await name(draft);
  } catch (error) {
    await removeDrafts(path, draft);
    throw error;
  }
  // Also those of other processes: any that is still at work finds the name taken.
  await removeDrafts(path);
  await sync(dirname(path));
  return isNamed;
}

/** False when the name is taken. */
async function linked(draft: string, path: string): Promise<boolean> {
  try {
    await link(draft, path);
    return true;
  } catch (error) {
    const { code } = error as NodeJS.ErrnoException;
    if (await isTaken(path)) return false;
    // A file system without hard links, such as that of a memory stick.
    if (code !== "EPERM" && code !== "ENOTSUP" && code !== "ENOSYS") throw error;
    await rename(draft, path);
    return true;
  }
}

async function isTaken(path: string): Promise<boolean> {
  return lstat(path).then(
    () => true,
    (error: NodeJS.ErrnoException) => {
      if (error.code === "ENOENT") return false;
      throw error;
    },
  );
}

/** Removes all drafts of a file, or one of them. */
export async function removeDrafts(path: string, only = path): Promise<void> {
  for (const name of await readdir(dirname(path))) {
    const isDraft = name.startsWith(basename(path)) && DRAFT.test(name.slice(basename(path).length));
    if (!isDraft || !name.startsWith(basename(only))) continue;
    await unlink(join(dirname(path), name)).catch((error: NodeJS.ErrnoException) => {
      // Another process removed it.
      if (error.code !== "ENOENT") throw error;
    });
  }
}

/** Makes a file's content, or a new name in a folder, survive a power loss (fsync(2), NOTES). */
async function sync(path: string): Promise<void> {
  const file = await open(path, "r");
  try {
    await file.sync();
  } finally {
    await file.close();
  }
}

/** The code of a system error, such as ENOENT, for an error message. */
export function codeOf(error: unknown): string {
  return (error as NodeJS.ErrnoException).code ?? "unknown error";
}
