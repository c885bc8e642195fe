import { execFileSync } from "node:child_process";
import { cpSync, existsSync, mkdirSync, mkdtempSync, rmSync, symlinkSync } from "node:fs";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { fileURLToPath } from "node:url";

/** The working tree that is copied. */
export const REPOSITORY = fileURLToPath(new URL("../..", import.meta.url));

/** A copy of the working tree, to break. */
export interface Copy {
  readonly folder: string;
  remove(): void;
}

/** Copies what git knows or would add, as it is on disk now; packages and what was built are shared by links. */
export function createCopy(): Copy {
  const folder = mkdtempSync(join(tmpdir(), "relay-mutants-"));
  for (const path of pathsInTree()) {
    mkdirSync(dirname(join(folder, path)), { recursive: true });
    cpSync(join(REPOSITORY, path), join(folder, path));
  }
  for (const shared of ["node_modules", "dist"]) symlinkSync(join(REPOSITORY, shared), join(folder, shared));
  return { folder, remove: () => rmSync(folder, { recursive: true, force: true }) };
}

function pathsInTree(): string[] {
  const listing = execFileSync("git", ["ls-files", "-z", "--cached", "--others", "--exclude-standard"], {
    cwd: REPOSITORY,
    encoding: "utf8",
  });
  // What was deleted but not yet committed is still listed.
  return listing.split("\0").filter((path) => path !== "" && existsSync(join(REPOSITORY, path)));
}
