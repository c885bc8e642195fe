import { readFileSync } from "node:fs";
import { join } from "node:path";
import { Agent, request } from "undici";
import { beforeAll, beforeEach, describe, expect, it } from "vitest";
import { type CleanUp, createFolder } from "../cli/run-relay.js";
import { createCallers } from "../support/callers.js";
import { totalOf } from "../support/exposition.js";
import { scrape } from "../support/scrape.js";
import { changeDatabase, createConnected, POLLING, sandbox, startWorkers, useSandbox, type Workers } from "./world.js";

useSandbox();

async function statusOnce(url: string): Promise<number> {
  const own = new Agent();
  const { statusCode, body } = await request(url, { dispatcher: own });
  await body.dump();
  await own.close();
  return statusCode;
}

/** One relay for all tests here: each finds two workers, and leaves two behind. */
describe("workers of one relay", { timeout: 180_000 }, () => {
  let relay: Workers;
  let adminToken: string;
  beforeAll(async () => {
    const cleanUps: CleanUp[] = [];
    const env = { RELAY_ADMIN_LISTEN: "127.0.0.1:0", RELAY_ADMIN_TOKEN_FILE: "admin.tokens" };
    relay = await startWorkers((cleanUp) => cleanUps.unshift(cleanUp), env);
    adminToken = readFileSync(join(relay.folder.path, "admin.tokens"), "utf8").trim().split(" ").at(-1) ?? "";
    return async () => {
      for (const cleanUp of cleanUps) await cleanUp();
    };
  });
  beforeEach(() => {
    const serving = async () => totalOf(await scrape(relay.adminUrl, adminToken), "relay_processes");
    return expect.poll(serving, POLLING).toBe(2);
  });

  it("serves with all workers on one port, over every protocol, and operators on another", async () => {
    const { url, adminUrl, publicKey } = relay;
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
  });

  it("replaces a worker that is killed, and loses no call that comes after", async () => {
    const { logged, call, workers } = relay;
    const before = workers();
    const [victim = 0] = before;
    const ended = logged("a worker exited unexpectedly and is replaced");
    process.kill(victim, "SIGKILL");
    await ended;
    for (let calls = 0; calls < 10; calls++) expect(await call()).toBe("success");
    await expect.poll(() => workers().length, POLLING).toBe(2);
    expect(workers()).not.toContain(victim);
  });

  it("refuses no connection while one worker lives and the other is killed again and again", async () => {
    const { logged, call, workers } = relay;
    const [survivor = 0] = workers();
    const outcomes: string[] = [];
    for (let round = 0; round < 4; round++) {
      await expect.poll(() => workers().length, POLLING).toBe(2);
      const ended = logged("a worker exited unexpectedly and is replaced");
      const victim = workers().find((pid) => pid !== survivor) as number;
      process.kill(victim, "SIGKILL");
      // One that has not served yet ends without that line.
      await Promise.race([ended, expect.poll(() => workers().includes(victim), POLLING).toBe(false)]);
      for (let calls = 0; calls < 5; calls++) outcomes.push(await call());
    }
    expect(new Set(outcomes)).toEqual(new Set(["success"]));
  });

  it("replaces a worker that hangs, so that it does not answer for long that nobody is alive", async () => {
    const { logged, call, workers } = relay;
    const [victim = 0] = workers();
    const ended = logged("a worker exited unexpectedly and is replaced");
    process.kill(victim, "SIGSTOP");
    await ended;
    expect(await call()).toBe("success");
    expect(workers()).not.toContain(victim);
  });

  it("says of each worker that it is alive, and ready or not", async () => {
    const { url, folder } = relay;
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

  it("replaces all workers on SIGHUP without a failed call, on kept and on new connections", async () => {
    const { child, logged, call, workers } = relay;
    const before = workers();
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
    expect(workers()).toHaveLength(2);
    expect(workers().filter((pid) => before.includes(pid))).toEqual([]);
    // Two workers are started, and two ended after two seconds of quiet each.
  });

  it("refresh a token once for callers of all of them", async () => {
    const { folder, call } = relay;
    const crowd = ["crowd", await createConnected(folder, "crowd")] as const;
    changeDatabase(folder, "UPDATE connections SET expires_at = 1 WHERE user_id = 'crowd'");
    const exchanges = () => sandbox.requests.filter(({ target }) => target === "/oauth/token").length;
    const before = exchanges();
    // The sandbox ends a connection whose refresh token comes twice.
    const outcomes = await Promise.all(Array.from({ length: 20 }, () => call(undefined, ...crowd)));
    expect(new Set(outcomes)).toEqual(new Set(["success"]));
    expect(exchanges() - before).toBe(1);
  });

  it("hold a limit of calls over all of them together", async () => {
    const { folder, call } = relay;
    const limited = ["limited", await createConnected(folder, "limited", "--calls-per-minute", "5")] as const;
    const outcomes: string[] = [];
    for (let calls = 0; calls < 10; calls++) outcomes.push(await call(undefined, ...limited));
    expect(outcomes.filter((outcome) => outcome === "success")).toHaveLength(5);
    expect(outcomes.slice(5)).toEqual(Array.from({ length: 5 }, () => "RATE_LIMITED"));
  });

  it("leave a second relay that wants their port no process behind, and it says why it cannot start", async () => {
    const env = { RELAY_WORKERS: "2", RELAY_LISTEN: relay.url.replace("http://", "") };
    const result = await createFolder().run(["serve"], { env });
    expect(result.exitCode).toBe(1);
    expect(result.stderr).toMatch(/EADDRINUSE.*stop it, or set RELAY_LISTEN to another address/);
  });
});
