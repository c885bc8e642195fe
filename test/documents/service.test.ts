import { execFile } from "node:child_process";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join, resolve } from "node:path";
import { promisify } from "node:util";
import { describe, expect, it, onTestFinished } from "vitest";
import { type DocumentBlock, documentPaths, readBlocks } from "../support/document-blocks.js";
import { freePort } from "../support/free-port.js";
import { createTestDatabase, POSTGRES_URL } from "../support/postgres.js";

const run = promisify(execFile);
const RELAY = resolve("dist/src/cli/relay.js");

/** Marks of blocks that are run one after another in one folder, with the service as the mark says. */
const SERVICE_MARKS = ["run with the service running", "run with the service stopped", "run with PostgreSQL"];

/**
 * One shell script of a document's blocks, in their order: before each the service is started or stopped as its mark says,
 * and its line is printed, so that the output tells where it came from.
 */
function scriptFromBlocks(blocks: readonly DocumentBlock[], replace: (text: string) => string): string {
  const parts = blocks.map(({ line, mark, text }) => {
    const service = mark === "run with the service running" ? "start_service" : "stop_service";
    return `${service}\necho "::line ${line}::"\n${replace(text)}`;
  });
  return [PRELUDE, ...parts, "stop_service"].join("\n");
}

/** The service logs to its standard output: the script reads on at "listening", and to the end when it has been stopped. */
const PRELUDE = `set -euo pipefail
service=
start_service() {
  [ -z "$service" ] || return 0
  exec 9< <(exec node '${RELAY}' serve)
  service=$!
  local line
  while read -r line <&9; do case "$line" in *'"listening"'*) return 0 ;; esac; done
  echo "the service did not start" >&2
  return 1
}
stop_service() {
  [ -n "$service" ] || return 0
  kill -TERM "$service"
  cat <&9 > /dev/null
  exec 9<&-
  service=
}
trap stop_service EXIT
`;
/** A document has a dozen commands, each a process of its own. */
const TIMEOUT_MS = 120_000;

const blocksOf = (document: string) => readBlocks(document).filter(({ mark }) => SERVICE_MARKS.includes(mark ?? ""));

/** Runs the commands of a document as they stand, but for ports and databases. Resolves to what each block printed. */
async function outputsOf(document: string): Promise<string[]> {
  const folder = mkdtempSync(join(tmpdir(), "relay-documents-"));
  onTestFinished(() => rmSync(folder, { recursive: true, force: true }));
  const [port, adminPort] = [await freePort(), await freePort()];
  const database = blocksOf(document).some(({ mark }) => mark === "run with PostgreSQL") ? await postgresUrl() : "";
  const replace = (text: string) =>
    text
      .replaceAll(":8080", `:${port}`)
      .replaceAll(":8081", `:${adminPort}`)
      .replace(/'postgres:\/\/[^']*'/g, `'${database}'`);
  const env = {
    PATH: process.env["PATH"] ?? "",
    RELAY_LISTEN: `127.0.0.1:${port}`,
    RELAY_ADMIN_LISTEN: `127.0.0.1:${adminPort}`,
  };
  // There is a store in SQLite to move.
  if (database !== "") await run("npx", ["relay", "app", "create", "Shop"], { cwd: folder, env });
  const script = scriptFromBlocks(blocksOf(document), replace);
  const { stdout } = await run("bash", ["-c", script], { cwd: folder, env }).catch((error) => {
    throw new Error(`${document}: ${error.stderr}\n${error.stdout}`);
  });
  return stdout.split(/^::line \d+::\n/m).slice(1);
}

async function postgresUrl(): Promise<string> {
  const database = await createTestDatabase();
  onTestFinished(() => database.remove());
  return database.url;
}

/** What a document's commands must have printed, block by block. */
const EXPECTED: Readonly<Record<string, readonly RegExp[]>> = {
  "docs/operators.md": [
    /^ok\n/,
    /^ok\nok\n$/,
    /is a copy of sqlite:data\/relay\.db/,
    /^applications +\d+ +0$/m,
    /Before the backup[\s\S]*After the backup[\s\S]*PUBLIC KEY(?![\s\S]*After the backup)[\s\S]*Before the backup/,
    /new key +\w+\nrows sealed again +1\nrows left +0\nok\n$/,
    /key +\w+\nrows sealed again +0\nrows left +0\n$/,
  ],
  "docs/configuration.md": [
    /^ok\n[\s\S]*"RELAY_DEADLINE_MS":"10000"/,
    /^RELAY_DEADLINE_MS +20000\nRELAY_DEADLINE_MS +30000\n$/,
    /intranet\.json: ok \(intranet\)[\s\S]*api\.intranet\.example/,
    /^data\/providers\/acme\.json: ok \(acme\)\n {2}connect: [\s\S]*^data\/providers\/meter\.json: ok \(meter\)\n[\s\S]*^data\/providers\/local\.json: ok \(local\)\n/m,
    /^data\/providers\/ledger\.json: ok \(ledger\)\n/,
  ],
  "docs/administration.md": [/^http:\/\/127\.0\.0\.1:\d+\/console\/#sign-in=[\w-]{43}\n$/],
  "docs/call-tokens.md": [
    /^$/,
    /INVALID_OAUTHID[\s\S]*CALL_NOT_PERMITTED/,
    /^eyJ[\w-]+\.[\w-]+\.[\w-]{43}\n$/,
    /call rules +github \(1\)/,
  ],
  "docs/agents.md": [/^$/, /"state\\":\\"not connected[\s\S]*\/repos\/acme\/site\/\*\*/],
  "docs/hardening.md": [/PRIVATE_KEY[\s\S]*192\.0\.2\.0\/24/i],
  "docs/migrating.md": [
    /^$/,
    /github/,
    /^3 stored, 0 existing ones kept, 0 refused\.\n[\s\S]*a\+b@example\.com/,
    /^new key +\w+\n0 stored, 3 existing ones kept, 0 refused\.\n$/,
  ],
  "docs/providers.md": [/^googledrive [\s\S]*^amplitude [\s\S]*api\.github\.com[\s\S]*^github: ok/m],
  "docs/scaling.md": [/is up to date/, /applications +1/],
  "CONTRIBUTING.md": [/^example\.json: ok \(example\)\n {2}connect: ok\n {2}refresh: ok\n/],
};

describe("the commands in", () => {
  it("every document that has some are run", () => {
    const documents = documentPaths().filter((document) => blocksOf(document).length > 0);
    expect(documents.sort()).toEqual(Object.keys(EXPECTED).sort());
  });

  const runnable = Object.entries(EXPECTED).map(([document, expected]) => ({ document, expected }));
  for (const { document, expected } of runnable) {
    const needsPostgres = blocksOf(document).some(({ mark }) => mark === "run with PostgreSQL");
    it.skipIf(needsPostgres && POSTGRES_URL === undefined)(
      `${document} work as they stand`,
      async () => {
        const outputs = await outputsOf(document);
        expect(outputs).toHaveLength(expected.length);
        for (const [at, pattern] of expected.entries()) expect(outputs[at]).toMatch(pattern);
        expect(outputs.join("")).not.toMatch(/gho_example|xox[pe]-example/);
      },
      TIMEOUT_MS,
    );
  }
});
