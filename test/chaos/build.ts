import { execFileSync } from "node:child_process";
import { cpSync, mkdirSync, mkdtempSync, rmSync } from "node:fs";
import { join } from "node:path";
import { fileURLToPath } from "node:url";

const REPOSITORY = fileURLToPath(new URL("../..", import.meta.url));

/** A relay that was just built. */
export interface Build {
  /** The script of the command line. */
  readonly script: string;
  remove(): void;
}

/**
 * Builds the relay and puts it aside, within reach of node_modules: whoever builds during a long run does not change
 * what is restarted.
 */
export function createBuild(): Build {
  execFileSync("npm", ["run", "--silent", "build"], { cwd: REPOSITORY, stdio: ["ignore", 2, 2] });
  const cache = join(REPOSITORY, "node_modules", ".cache");
  mkdirSync(cache, { recursive: true });
  const folder = mkdtempSync(join(cache, "relay-chaos-"));
  cpSync(join(REPOSITORY, "dist"), join(folder, "dist"), { recursive: true });
  cpSync(join(REPOSITORY, "package.json"), join(folder, "package.json"));
  return {
    script: join(folder, "dist", "src", "cli", "relay.js"),
    remove: () => rmSync(folder, { recursive: true, force: true }),
  };
}
