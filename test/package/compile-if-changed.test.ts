import { execFile } from "node:child_process";
import { accessSync, constants, mkdirSync, mkdtempSync, rmSync, utimesSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { promisify } from "node:util";
import { expect, it, onTestFinished } from "vitest";
import manifest from "../../package.json" with { type: "json" };

const SCRIPT = fileURLToPath(new URL("../../.ci/compile-if-changed.mjs", import.meta.url));
const TOLD = "Compiling the service. This takes some seconds, and is done again only when the sources change.\n";
const run = promisify(execFile);

/** A package whose build only says so; all files are of the same moment. */
function createPackage(): string {
  const path = mkdtempSync(join(tmpdir(), "relay-compile-"));
  onTestFinished(() => rmSync(path, { recursive: true, force: true }));
  for (const folder of ["src/sub", "gen", "client", "dist"]) mkdirSync(join(path, folder), { recursive: true });
  const build = "node -e \"fs.writeFileSync('dist/built','');console.log('built')\"";
  writeFileSync(join(path, "package.json"), JSON.stringify({ scripts: { build } }));
  for (const file of ["package-lock.json", "tsconfig.json", "tsconfig.build.json", "tsconfig.browser.json"]) {
    writeFileSync(join(path, file), "{}");
  }
  for (const file of ["src/sub/a.ts", "src/sub/b.ts"]) writeFileSync(join(path, file), "");
  return path;
}

it("npm start and npm run demo tell that they compile, and do so only when a source has changed", async () => {
  for (const name of ["start", "demo"] as const) {
    expect(manifest.scripts[name]).toMatch(
      /^node \.ci\/compile-if-changed\.mjs && exec node dist\/src\/cli\/relay\.js/,
    );
  }
  const cwd = createPackage();
  const compile = () => run(process.execPath, [SCRIPT], { cwd });
  const [compiled, silent] = [
    { stdout: "built\n", stderr: TOLD },
    { stdout: "", stderr: "" },
  ];
  expect(await compile()).toEqual(compiled);
  expect(await compile()).toEqual(silent);
  const later = new Date(Date.now() + 3_600_000);
  utimesSync(join(cwd, "src/sub/a.ts"), later, later);
  expect(await compile()).toEqual(compiled);
  const earlier = new Date(Date.now() - 3_600_000);
  utimesSync(join(cwd, "src/sub/a.ts"), earlier, earlier);
  expect(await compile()).toEqual(silent);
  utimesSync(join(cwd, "dist/built"), earlier, earlier);
  // That a file has gone is seen by the time of its folder.
  for (const path of ["package.json", "package-lock.json", "src/sub/b.ts", "src", "gen", "client"]) {
    utimesSync(join(cwd, path), new Date(0), new Date(0));
  }
  for (const name of ["tsconfig.json", "tsconfig.build.json", "tsconfig.browser.json"]) {
    utimesSync(join(cwd, name), new Date(0), new Date(0));
  }
  rmSync(join(cwd, "src/sub/a.ts"));
  expect(await compile()).toEqual(compiled);
});

it("npx relay can be run although dist/ was made anew: npx sets the mode of its program only once for a folder", () => {
  const program = fileURLToPath(new URL(`../../${manifest.bin.relay}`, import.meta.url));
  expect(() => accessSync(program, constants.X_OK)).not.toThrow();
});
