import { readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { createInterface } from "node:readline";
import Database from "better-sqlite3";
import { Agent, request } from "undici";
import { afterAll, beforeAll } from "vitest";
import { type CliFolder, type Env, type OnEnd, prepareOnce, startServe } from "../cli/run-relay.js";
import { type Sandbox, startSandbox } from "../support/sandbox.js";

/** One for all relays of a file. */
export let sandbox: Sandbox;
let prepared: ReturnType<typeof prepareOnce<{ publicKey: string }>>;

/** Starts the sandbox for the tests of a file. Call it at its top: files share this module. */
export function useSandbox(): void {
  beforeAll(async () => {
    sandbox = await startSandbox();
  });
  afterAll(() => sandbox.close());
  // An application and a user who is connected to the sandbox.
  prepared = prepareOnce(async (folder) => {
    writeFileSync(join(folder.path, "sandbox.json"), JSON.stringify(sandbox.providerDefinition("sandbox")));
    return { publicKey: await createConnected(folder, "ada") };
  });
}

const SETTINGS = { RELAY_PROVIDERS: "sandbox.json", RELAY_ALLOW_LOOPBACK: "true" };

/** Makes an application with a client and a connected user at the sandbox; resolves to its public key. */
export async function createConnected(folder: CliFolder, userId: string, ...options: string[]): Promise<string> {
  const { publicKey } = await folder.json(["app", "create", userId, ...options]);
  const client = { env: SETTINGS, input: JSON.stringify(sandbox.client) };
  await folder.json(["client", "put", "--app", publicKey, "--provider", "sandbox"], client);
  const put = ["connection", "put", "--app", publicKey, "--provider", "sandbox", "--user", userId];
  await folder.json(put, { env: SETTINGS, input: JSON.stringify(sandbox.issueToken()) });
  return publicKey;
}

/** Runs SQL beside the relay. */
export function changeDatabase(folder: CliFolder, sql: string): void {
  new Database(join(folder.path, "relay.db")).exec(sql).close();
}

/** A relay with two workers. */
export type Workers = Awaited<ReturnType<typeof startWorkers>>;

/** A folder with an application and the connected user `ada`, and the settings of two workers. */
export async function prepareWorkers(onEnd?: OnEnd) {
  const settings = { RELAY_LISTEN: "127.0.0.1:0", RELAY_WORKERS: "2", ...SETTINGS };
  return { ...(await prepared(onEnd)), settings };
}

/** Starts one, on such a folder of its own. */
export async function startWorkers(onEnd: OnEnd, env: Env = {}) {
  const { folder, publicKey, settings: common } = await prepareWorkers(onEnd);
  const settings = { ...common, ...env };
  const { url, adminUrl, child } = await startServe(folder, settings);
  const lines = createInterface(child.stdout);
  const logged = (msg: string) =>
    new Promise<void>((resolve) => {
      lines.on("line", (line) => {
        if (JSON.parse(line).msg === msg) resolve();
      });
    });
  const body = JSON.stringify({ url: `${sandbox.origin}/me`, method: "GET" });
  return {
    ...{ url, adminUrl, folder, settings, child, publicKey, lines, logged },
    workers: () => workersOf(child.pid),
    /** Calls for `ada` of the first application, unless told. */
    call: (dispatcher?: Agent, userId = "ada", key = publicKey) =>
      callOnce(`${url}/oauth/method/sandbox/call?user_id=${userId}&public_key=${key}`, body, dispatcher),
  };
}

/** The errorType of the row, or `success`. Each call has a connection of its own, unless a dispatcher keeps one. */
export async function callOnce(url: string, body: string, dispatcher?: Agent): Promise<string> {
  const own = dispatcher ?? new Agent();
  const answer = await request(url, { method: "POST", body, dispatcher: own });
  const { rows } = (await answer.body.json()) as { rows: [{ pincStatus: string; errorType?: string }] };
  if (dispatcher === undefined) await own.close();
  return rows[0].errorType ?? rows[0].pincStatus;
}

/** For what comes by itself: workers take their time to start on a busy machine. */
export const POLLING = { timeout: 60_000 };

/** Process ids of the workers of a supervisor. */
export function workersOf(pid: number | undefined): number[] {
  return readFileSync(`/proc/${pid}/task/${pid}/children`, "utf8").trim().split(" ").map(Number);
}
