import { execFileSync } from "node:child_process";
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

function run(program: string, ...args: readonly string[]): void {
  execFileSync(program, args, { cwd: REPOSITORY, stdio: ["ignore", 2, 2] });
}
