import { execFileSync, spawnSync } from "node:child_process";
import { mkdtempSync, symlinkSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";

/** The folder of package.json. */
export const REPOSITORY: string = fileURLToPath(new URL("../..", import.meta.url));

/** The relay's own script. */
export const RELAY_SCRIPT = "dist/src/cli/relay.js";

/** Builds the processes of the benchmark, and the relay: a loader that compiles on the way would be measured, too. */
export function build({ withRelay }: { readonly withRelay: boolean }): void {
  if (withRelay) run("npm", "run", "--silent", "build");
  run("npx", "tsc", "-p", "test/bench/tsconfig.json");
}

/** The script of one process of the benchmark. */
export function scriptOf(name: string): string {
  return `dist/bench/${name}.js`;
}

/**
 * Builds the relay of a commit in a folder of its own, which is the caller's to remove; throws where that fails. Its
 * packages are those of this checkout while both lock files are the same.
 */
export function buildCommit(commit: string): string {
  const folder = mkdtempSync(join(tmpdir(), "relay-bench-commit-"));
  runIn(REPOSITORY, "git", "rev-parse", "--verify", "--quiet", `${commit}^{commit}`);
  runIn(REPOSITORY, "sh", "-c", 'git archive "$1" | tar -x -C "$2"', "sh", commit, folder);
  if (isLockOf(commit)) symlinkSync(join(REPOSITORY, "node_modules"), join(folder, "node_modules"));
  else runIn(folder, "npm", "ci", "--no-audit", "--no-fund", "--loglevel=error");
  runIn(folder, "npm", "run", "--silent", "build");
  return folder;
}

function isLockOf(commit: string): boolean {
  return spawnSync("git", ["diff", "--quiet", commit, "--", "package-lock.json"], { cwd: REPOSITORY }).status === 0;
}

function run(program: string, ...args: readonly string[]): void {
  runIn(REPOSITORY, program, ...args);
}

function runIn(cwd: string, program: string, ...args: readonly string[]): void {
  execFileSync(program, args, { cwd, stdio: ["ignore", 2, 2] });
}
