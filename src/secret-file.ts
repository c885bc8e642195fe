import { randomBytes } from "node:crypto";
import { type FileHandle, link, mkdir, open, unlink } from "node:fs/promises";
import { dirname } from "node:path";

/**
 * Creates a file of secrets with mode 0600, and its folder. Leaves a file alone that another process created meanwhile.
 *
 * The file appears under its name only when it is complete and on disk: written beside it, then linked, which fails
 * when the name is taken. Resolves to whether it was this process that made it.
 */
export async function createSecretFile(path: string, text: string): Promise<boolean> {
  const folder = dirname(path);
  await mkdir(folder, { recursive: true, mode: 0o700 });
  const draft = `${path}.${randomBytes(6).toString("hex")}`;
  let isMade: boolean;
  try {
    await writeNewFile(draft, async (file) => file.writeFile(text));
    isMade = await linked(draft, path);
  } finally {
    await unlink(draft).catch(ignoreMissing);
  }
  await syncFolder(folder);
  return isMade;
}

/** Creates a file with mode 0600, which must not exist, and removes it again when it cannot be filled. */
export async function writeNewFile(path: string, fill: (file: FileHandle) => Promise<void>): Promise<void> {
  const file = await open(path, "wx", 0o600);
  try {
    await fill(file);
    await file.sync();
  } catch (error) {
    await unlink(path).catch(ignoreMissing);
    throw error;
  } finally {
    await file.close();
  }
}

/** Makes a new name in a folder survive a power loss (fsync(2), NOTES). */
export async function syncFolder(path: string): Promise<void> {
  const folder = await open(path, "r");
  try {
    await folder.sync();
  } finally {
    await folder.close();
  }
}

async function linked(draft: string, path: string): Promise<boolean> {
  try {
    await link(draft, path);
    return true;
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === "EEXIST") return false;
    throw error;
  }
}

function ignoreMissing(error: NodeJS.ErrnoException): void {
  if (error.code !== "ENOENT") throw error;
}
