import { once } from "node:events";
import { readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { createInterface } from "node:readline";
import Database from "better-sqlite3";
import { Agent, request } from "undici";
import { afterAll, beforeAll, describe, it } from "vitest";
import { type Sandbox, startSandbox } from "../../src/sandbox/sandbox.js";
import { type CliFolder, createFolder, type Env, type OnEnd, prepareOnce, startServe } from "../cli/run-relay.js";
import { createCallers } from "../support/callers.js";
import { freePort } from "../support/free-port.js";

let sandbox: Sandbox;
beforeAll(async () => {
  sandbox = await startSandbox();
});
afterAll(() => sandbox.close());

const SETTINGS = { RELAY_PROVIDERS: "sandbox.json", RELAY_ALLOW_LOOPBACK: "true" };

/** An application and a user who is connected to the sandbox. */
const prepared = prepareOnce(async (folder) => {
  writeFileSync(join(folder.path, "sandbox.json"), JSON.stringify(sandbox.providerDefinition("sandbox")));
  const { publicKey } = await folder.json(["app", "create", "A"]);
  const client = { env: SETTINGS, input: JSON.stringify(sandbox.client) };
  await folder.json(["client", "put", "--app", publicKey, "--provider", "sandbox"], client);
  const put = ["connection", "put", "--app", publicKey, "--provider", "sandbox", "--user", "ada"];
  await folder.json(put, { env: SETTINGS, input: JSON.stringify(sandbox.issueToken()) });
  return { publicKey: publicKey as string };
});

function changeDatabase(folder: CliFolder, sql: string): void {
  new Database(join(folder.path, "relay.db")).exec(sql).close();
}

interface WorkersOptions {
  readonly env?: Env;
  /** Does what has to be done before the start. */
  readonly before?: (folder: CliFolder, publicKey: string) => Promise<unknown>;
}

/** A relay with two workers on it. */
async function startWorkers(onEnd: OnEnd, { env = {}, before }: WorkersOptions = {}) {
  const { folder, publicKey } = await prepared(onEnd);
  await before?.(folder, publicKey);
  const settings = { ...SETTINGS, ...env };
  const { url, adminUrl, child } = await startServe(folder, { RELAY_WORKERS: "2", ...settings });
  const lines = createInterface(child.stdout);
  const logged = (msg: string) =>
    new Promise<void>((resolve) => {
      lines.on("line", (line) => {
        if (JSON.parse(line).msg === msg) resolve();
      });
    });
  const callUrl = `${url}/oauth/method/sandbox/call?user_id=ada&public_key=${publicKey}`;
  const body = JSON.stringify({ url: `${sandbox.origin}/me`, method: "GET" });
  return {
    url,
    adminUrl,
    folder,
    settings,
    child,
    publicKey,
    logged,
    call: (dispatcher?: Agent) => callOnce(callUrl, body, dispatcher),
  };
}

/** The errorType of the row, or `success`. Each call has a connection of its own, unless a dispatcher keeps one. */
async function callOnce(url: string, body: string, dispatcher?: Agent): Promise<string> {
  const own = dispatcher ?? new Agent();
  const answer = await request(url, { method: "POST", body, dispatcher: own });
  const { rows } = (await answer.body.json()) as { rows: [{ pincStatus: string; errorType?: string }] };
  if (dispatcher === undefined) await own.close();
  return rows[0].errorType ?? rows[0].pincStatus;
}

async function statusOnce(url: string): Promise<number> {
  const own = new Agent();
  const { statusCode, body } = await request(url, { dispatcher: own });
  await body.dump();
  await own.close();
  return statusCode;
}

const POLLING = { timeout: 60_000 };

const workersOf = (pid: number | undefined) =>
  readFileSync(`/proc/${pid}/task/${pid}/children`, "utf8").trim().split(" ").map(Number);

// Each has a folder and ports of its own, and most of what they take is waiting for workers to start and to end.
describe.concurrent("workers", { timeout: 180_000 }, () => {
  it("serves with all workers on one port, over every protocol, operators on another, and ends with 0", async ({
    expect,
    onTestFinished,
  }) => {
    const { url, adminUrl, child, publicKey } = await startWorkers(onTestFinished, {
      env: { RELAY_ADMIN_LISTEN: "127.0.0.1:0" },
    });
    expect(workersOf(child.pid)).toHaveLength(2);
    // Connections of their own go to the workers in turn.
    for (const [port, status] of [
      [adminUrl, 401],
      [url, 404],
      [adminUrl, 401],
      [url, 404],
    ] as const) {
      const path = "/relay.admin.v1.ApplicationService/ListApplications";
      const answer = await request(port + path, { method: "POST", headers: { connection: "close" } });
      await answer.body.dump();
      expect([port, answer.statusCode]).toEqual([port, status]);
    }
    for (const [protocol, call] of createCallers(url)) {
      const description = { url: `${sandbox.origin}/me`, method: "GET" };
      const row = await call({ providerName: "sandbox", userId: "ada", publicKey, call: description });
      expect([protocol, row.pincStatus]).toEqual([protocol, "success"]);
    }
    child.kill("SIGTERM");
    expect(await once(child, "close")).toEqual([0, null]);
  });

  it("replaces a worker that is killed, and loses no call that comes after", async ({ expect, onTestFinished }) => {
    const { child, logged, call } = await startWorkers(onTestFinished);
    const before = workersOf(child.pid);
    const [victim = 0] = before;
    const ended = logged("a worker ended by itself and is replaced");
    process.kill(victim, "SIGKILL");
    await ended;
    for (let calls = 0; calls < 10; calls++) expect(await call()).toBe("success");
    await expect.poll(() => workersOf(child.pid).length, POLLING).toBe(2);
    expect(workersOf(child.pid)).not.toContain(victim);
  });

  it("replaces all workers when they end at once, again and again, and can be stopped meanwhile", async ({
    expect,
    onTestFinished,
  }) => {
    // The system would choose another port for those that come after all have ended.
    const { child, call } = await startWorkers(onTestFinished, {
      env: { RELAY_LISTEN: `127.0.0.1:${await freePort()}` },
    });
    // More often than without a pause, if whoever kills them were a sign that they cannot live.
    for (let round = 0; round < 2; round++) {
      const before = workersOf(child.pid);
      for (const pid of before) process.kill(pid, "SIGKILL");
      const fresh = () => workersOf(child.pid).filter((pid) => pid > 0 && !before.includes(pid)).length;
      await expect.poll(fresh, POLLING).toBe(2);
    }
    await expect.poll(() => call().catch(() => "refused"), POLLING).toBe("success");
    for (const pid of workersOf(child.pid)) process.kill(pid, "SIGKILL");
    child.kill("SIGTERM");
    // 1 where it comes before the workers have ended: they did not end well.
    expect([
      [0, null],
      [1, null],
    ]).toContainEqual(await once(child, "close"));
  });

  it("refuses no connection while one worker lives and the other is killed again and again", async ({
    expect,
    onTestFinished,
  }) => {
    const { child, logged, call } = await startWorkers(onTestFinished);
    const [survivor = 0] = workersOf(child.pid);
    const outcomes: string[] = [];
    for (let round = 0; round < 4; round++) {
      await expect.poll(() => workersOf(child.pid).length, POLLING).toBe(2);
      const ended = logged("a worker ended by itself and is replaced");
      const victim = workersOf(child.pid).find((pid) => pid !== survivor) as number;
      process.kill(victim, "SIGKILL");
      // One that has not served yet ends without that line.
      await Promise.race([ended, expect.poll(() => workersOf(child.pid).includes(victim), POLLING).toBe(false)]);
      for (let calls = 0; calls < 5; calls++) outcomes.push(await call());
    }
    expect(new Set(outcomes)).toEqual(new Set(["success"]));
  });

  it("replaces a worker that hangs, so that it does not answer for long that nobody is alive", async ({
    expect,
    onTestFinished,
  }) => {
    const { child, logged, call } = await startWorkers(onTestFinished);
    const [victim = 0] = workersOf(child.pid);
    const ended = logged("a worker ended by itself and is replaced");
    process.kill(victim, "SIGSTOP");
    await ended;
    expect(await call()).toBe("success");
    expect(workersOf(child.pid)).not.toContain(victim);
  });

  it("says of each worker that it is alive, and ready or not", async ({ expect, onTestFinished }) => {
    const { url, folder } = await startWorkers(onTestFinished);
    // Each request has a connection of its own, and connections go to the workers in turn.
    const statuses = async (path: string) => {
      const answers: number[] = [];
      for (let turn = 0; turn < 4; turn++) answers.push(await statusOnce(url + path));
      return [...new Set(answers)];
    };
    expect(await statuses("/readyz")).toEqual([200]);
    changeDatabase(folder, "ALTER TABLE applications RENAME TO away");
    expect(await statuses("/readyz")).toEqual([503]);
    expect(await statuses("/healthz")).toEqual([200]);
    changeDatabase(folder, "ALTER TABLE away RENAME TO applications");
    expect(await statuses("/readyz")).toEqual([200]);
  });

  it("replaces all workers on SIGHUP without a failed call, on kept and on new connections", async ({
    expect,
    onTestFinished,
  }) => {
    const { child, logged, call } = await startWorkers(onTestFinished);
    const before = workersOf(child.pid);
    const restarted = logged("restarted");
    let isOver = false;
    const kept = new Agent({ connections: 4 });
    const outcomes: string[] = [];
    const caller = async (dispatcher?: Agent) => {
      while (!isOver) outcomes.push(await call(dispatcher));
    };
    const callers = [caller(kept), caller(kept), caller(), caller()];
    // As a terminal does that is closed.
    for (const pid of [...before, child.pid as number]) process.kill(pid, "SIGHUP");
    await restarted;
    isOver = true;
    await Promise.all(callers);
    await kept.close();
    expect(new Set(outcomes)).toEqual(new Set(["success"]));
    expect(workersOf(child.pid)).toHaveLength(2);
    expect(workersOf(child.pid).filter((pid) => before.includes(pid))).toEqual([]);
    // Two workers are started, and two ended after two seconds of quiet each.
  });

  it("starts anew once more for a SIGHUP that comes while it does", async ({ expect, onTestFinished }) => {
    const { url, child, logged, folder, publicKey } = await startWorkers(onTestFinished);
    const define = (displayName: string) => {
      const definition = { ...sandbox.providerDefinition("sandbox"), apiOrigins: [`https://${displayName}.example`] };
      writeFileSync(join(folder.path, "sandbox.json"), JSON.stringify(definition));
    };
    const restarted = logged("restarted");
    define("first");
    child.kill("SIGHUP");
    const before = workersOf(child.pid);
    // One that reads the first change has been started.
    await expect.poll(() => workersOf(child.pid).some((pid) => !before.includes(pid)), POLLING).toBe(true);
    define("second");
    child.kill("SIGHUP");
    await restarted;
    const body = JSON.stringify({ url: "https://second.example/", method: "GET" });
    const target = `${url}/oauth/method/sandbox/call?user_id=ada&public_key=${publicKey}`;
    const outcomes: string[] = [];
    for (let calls = 0; calls < 4; calls++) outcomes.push(await callOnce(target, body));
    expect(new Set(outcomes)).not.toContain("URL_NOT_ALLOWED");
  });

  it("renews a token once for callers of all workers", async ({ expect, onTestFinished }) => {
    const { call } = await startWorkers(onTestFinished, {
      before: async (folder) => changeDatabase(folder, "UPDATE connections SET expires_at = 1"),
    });
    // The sandbox ends a connection whose refresh token comes twice.
    const outcomes = await Promise.all(Array.from({ length: 20 }, () => call()));
    expect(new Set(outcomes)).toEqual(new Set(["success"]));
    expect(sandbox.requests.filter(({ target }) => target === "/oauth/token")).toHaveLength(1);
  });

  it("holds a limit of calls over all workers together", async ({ expect, onTestFinished }) => {
    const { call } = await startWorkers(onTestFinished, {
      before: (folder, key) => folder.json(["app", "update", key, "--calls-per-minute", "5"]),
    });
    const outcomes: string[] = [];
    for (let calls = 0; calls < 10; calls++) outcomes.push(await call());
    expect(outcomes.filter((outcome) => outcome === "success")).toHaveLength(5);
    expect(outcomes.slice(5)).toEqual(Array.from({ length: 5 }, () => "RATE_LIMITED"));
  });

  it("records the calls of all workers, also those that were made just before the end", async ({
    expect,
    onTestFinished,
  }) => {
    const { child, folder, settings, publicKey, call } = await startWorkers(onTestFinished);
    // Each on a connection of its own, so that every worker gets some.
    for (let calls = 0; calls < 8; calls++) expect(await call()).toBe("success");
    const ended = once(child, "close");
    child.kill("SIGTERM");
    expect(await ended).toEqual([0, null]);
    const calls: Array<{ callId: string }> = await folder.json(["calls", "list", "--app", publicKey], {
      env: settings,
    });
    expect(new Set(calls.map(({ callId }) => callId)).size).toBe(8);
  });

  it("ends its workers when the supervisor is killed", async ({ expect, onTestFinished }) => {
    const { child } = await startWorkers(onTestFinished);
    const workers = workersOf(child.pid);
    child.kill("SIGKILL");
    const isAlive = (pid: number) => {
      try {
        return process.kill(pid, 0);
      } catch {
        return false;
      }
    };
    await expect.poll(() => workers.filter(isAlive), POLLING).toEqual([]);
  });

  it("says why it cannot start, and leaves no process behind", async ({ expect, onTestFinished }) => {
    const { url } = await startWorkers(onTestFinished);
    const env = { RELAY_WORKERS: "2", RELAY_LISTEN: url.replace("http://", "") };
    const result = await createFolder(onTestFinished).run(["serve"], { env });
    expect(result.exitCode).toBe(1);
    expect(result.stderr).toMatch(/EADDRINUSE/);
  });
});
