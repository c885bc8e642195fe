import { spawn } from "node:child_process";
import { once } from "node:events";
import { readFileSync, rmSync } from "node:fs";
import { join, relative } from "node:path";

/** How a run of tests ended. */
export type Verdict =
  | { readonly result: "passed" }
  /** `test` is the first that failed: its file and its name. */
  | { readonly result: "failed"; readonly test: string }
  /** No test failed, but the run did: it says nothing about a guard. */
  | { readonly result: "broken"; readonly problem: string };

/** A test that waits for what never comes fails after this long: far more than any chosen test takes. */
const TEST_TIMEOUT_MS = 15_000;
/** A run that does not end at all. */
const RUN_TIMEOUT_MS = 120_000;

/** Runs test files of a copy with vitest, up to the first failure. */
export async function runTests(folder: string, tests: readonly string[]): Promise<Verdict> {
  const report = join(folder, "report.json");
  rmSync(report, { force: true });
  const files = tests.map((test) => `test/${test}.test.ts`);
  const options = ["--bail=1", `--testTimeout=${TEST_TIMEOUT_MS}`, "--reporter=json", `--outputFile=${report}`];
  const exitCode = await run(folder, ["node_modules/vitest/vitest.mjs", "run", ...files, ...options]);
  if (exitCode === 0) return { result: "passed" };
  if (exitCode === undefined) return { result: "failed", test: `none ended within ${RUN_TIMEOUT_MS / 1000} s` };
  return verdictFrom(folder, report);
}

/** The exit code; undefined when the run had to be ended. Standard error is of no use: the report says it all. */
async function run(folder: string, args: readonly string[]): Promise<number | undefined> {
  const env = { ...process.env, VITE_CONFIG_NATIVE_IGNORE_WARNING: "true" };
  // A group of its own, so that the workers end with it.
  const child = spawn(process.execPath, args, { cwd: folder, env, stdio: "ignore", detached: true });
  const timer = setTimeout(() => child.pid !== undefined && process.kill(-child.pid, "SIGKILL"), RUN_TIMEOUT_MS);
  const [exitCode] = await once(child, "exit");
  clearTimeout(timer);
  return exitCode ?? undefined;
}

interface Report {
  readonly testResults: ReadonlyArray<{
    readonly name: string;
    readonly status: string;
    readonly message: string;
    readonly assertionResults: ReadonlyArray<{ readonly fullName: string; readonly status: string }>;
  }>;
}

function verdictFrom(folder: string, path: string): Verdict {
  const { testResults } = JSON.parse(readFileSync(path, "utf8")) as Report;
  const failed = testResults.filter(({ status }) => status === "failed");
  for (const { name, assertionResults } of failed) {
    const test = assertionResults.find(({ status }) => status === "failed");
    if (test !== undefined) return { result: "failed", test: `${fileOf(folder, name)}: ${test.fullName}` };
  }
  const [file] = failed;
  if (file === undefined) return { result: "broken", problem: "no test failed, but the run did" };
  // A hook failed: the file has tests, and all were skipped.
  if (file.assertionResults.length > 0) {
    return { result: "failed", test: `${fileOf(folder, file.name)}: before its first test` };
  }
  return { result: "broken", problem: `${fileOf(folder, file.name)}: ${file.message.split("\n", 1)[0]}` };
}

function fileOf(folder: string, path: string): string {
  return relative(join(folder, "test"), path).replace(/\.test\.ts$/, "");
}
