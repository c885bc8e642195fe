import { execFileSync } from "node:child_process";
import { once } from "node:events";
import { readdirSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { createInterface } from "node:readline";
import { Agent, request } from "undici";
import { beforeAll, describe, expect, it } from "vitest";
import { type CleanUp, createFolder, type OnEnd, startServe } from "../cli/run-relay.js";
import { parseExposition, totalOf } from "../support/exposition.js";

const TOKEN = "CANARY_token_of_the_worker_metrics_test";

/** A relay with two workers, which count calls that are refused for want of an application. */
async function startWorkers(onEnd: OnEnd) {
  const folder = createFolder(onEnd);
  writeFileSync(join(folder.path, "admin.tokens"), `prometheus read-only ${TOKEN}\n`, { mode: 0o600 });
  const env = { RELAY_WORKERS: "2", RELAY_ADMIN_LISTEN: "127.0.0.1:0" };
  const { url, adminUrl, child } = await startServe(folder, env);
  const pid = child.pid as number;
  const lines = createInterface(child.stdout);
  const logged = (msg: string) =>
    new Promise<void>((resolve) => {
      lines.on("line", (line) => {
        if (JSON.parse(line).msg === msg) resolve();
      });
    });
  return { pid, child, logged, call: () => callOnce(url), scrape: (agent?: Agent) => scrapeOnce(adminUrl, agent) };
}

/** On a connection of its own, which the next worker in turn gets. */
async function callOnce(url: string): Promise<void> {
  const agent = new Agent();
  const path = "/oauth/method/github/call?user_id=u&public_key=k";
  const answer = await request(url + path, {
    method: "POST",
    body: '{"url":"https://x.test/","method":"GET"}',
    dispatcher: agent,
  });
  expect(await answer.body.text()).toContain("INVALID_PUBLIC_KEY");
  await agent.close();
}

/** Calls counted, and processes that answered; on a connection of its own, unless an agent keeps one. */
async function scrapeOnce(adminUrl: string, agent?: Agent) {
  const own = agent ?? new Agent();
  const headers = { authorization: `Bearer ${TOKEN}` };
  const { statusCode, body } = await request(`${adminUrl}/metrics`, { headers, dispatcher: own });
  const text = await body.text();
  if (agent === undefined) await own.close();
  if (statusCode !== 200) throw new Error(String(statusCode));
  const samples = parseExposition(text);
  return { calls: totalOf(samples, "relay_calls_total"), processes: totalOf(samples, "relay_processes") };
}

const workersOf = (pid: number) =>
  readFileSync(`/proc/${pid}/task/${pid}/children`, "utf8").trim().split(" ").map(Number);

/** One relay for all tests here: each finds two workers that serve, and what was counted before it. */
describe("metrics of workers", { timeout: 180_000 }, () => {
  let relay: Awaited<ReturnType<typeof startWorkers>>;
  beforeAll(async () => {
    const cleanUps: CleanUp[] = [];
    relay = await startWorkers((cleanUp) => cleanUps.unshift(cleanUp));
    return async () => {
      for (const cleanUp of cleanUps) await cleanUp();
    };
  });

  /** How many calls were counted, once two workers serve. */
  async function countBefore(): Promise<number> {
    await expect.poll(async () => (await relay.scrape()).processes, { timeout: 60_000 }).toBe(2);
    return (await relay.scrape()).calls;
  }

  it("are sums over all workers, whichever is asked, and go on when workers are replaced", async () => {
    const { pid, child, logged, call, scrape } = relay;
    const before = await countBefore();
    for (let calls = 0; calls < 5; calls++) await call();
    for (let scrapes = 0; scrapes < 4; scrapes++) expect(await scrape()).toEqual({ calls: before + 5, processes: 2 });
    await Promise.all(Array.from({ length: 8 }, call));
    // Nobody has asked since: what was counted is told by each worker that ends.
    const restarted = logged("restarted");
    child.kill("SIGHUP");
    await restarted;
    expect(await scrape()).toEqual({ calls: before + 13, processes: 2 });
    const ended = logged("a worker exited unexpectedly and is replaced");
    process.kill(workersOf(pid)[0] as number, "SIGKILL");
    await ended;
    expect((await scrape()).calls).toBe(before + 13);
    await call();
    expect((await scrape()).calls).toBe(before + 14);
  });

  it("do not wait for a worker that is silent, which counts as it was", async ({ onTestFinished }) => {
    const { pid, call, scrape } = relay;
    const before = await countBefore();
    for (let calls = 0; calls < 4; calls++) await call();
    expect(await scrape()).toEqual({ calls: before + 4, processes: 2 });
    const [silent = 0] = workersOf(pid);
    process.kill(silent, "SIGSTOP");
    onTestFinished(() => goOn(silent));
    // Connections that the silent one gets are answered by nobody.
    expect(await Promise.any([scrape(), scrape(), scrape()])).toEqual({ calls: before + 4, processes: 2 });
  });

  it("are not to be had while the supervisor is silent, rather than in part", async ({ onTestFinished }) => {
    const { pid, scrape } = relay;
    const kept = new Agent({ connections: 1, headersTimeout: 20_000 });
    onTestFinished(() => kept.close());
    const before = await countBefore();
    expect(await scrape(kept)).toEqual({ calls: before, processes: 2 });
    process.kill(pid, "SIGSTOP");
    onTestFinished(() => goOn(pid));
    await expect(scrape(kept)).rejects.toThrow("503");
  });

  it("are told by workers that have no file descriptor left", async ({ onTestFinished }) => {
    const { pid, scrape } = relay;
    const kept = new Agent({ connections: 1 });
    onTestFinished(() => kept.close());
    const before = await countBefore();
    await scrape(kept);
    const workers = workersOf(pid);
    for (const worker of workers) {
      limitDescriptors(worker, 1);
      onTestFinished(() => limitDescriptors(worker, 1024));
    }
    expect(await scrape(kept)).toEqual({ calls: before, processes: 2 });
    expect(workersOf(pid)).toEqual(workers);
  });

  it("do not end a restart when they are asked of a worker that died while it was to finish its work", async ({
    onTestFinished,
  }) => {
    const { pid, child, logged, scrape } = relay;
    const kept = [new Agent({ connections: 1 }), new Agent({ connections: 1 })];
    for (const agent of kept) onTestFinished(() => agent.destroy());
    await countBefore();
    // Connections go to the workers in turn.
    for (const agent of kept) await scrape(agent);
    const [dying = 0] = workersOf(pid);
    process.kill(dying, "SIGSTOP");
    onTestFinished(() => goOn(dying));
    const restarted = logged("restarted");
    child.kill("SIGHUP");
    const scrapeAny = () => Promise.race(kept.map(scrape));
    // As soon as the new one is counted, the old one has been told to stop.
    await expect.poll(async () => (await scrapeAny()).processes, { timeout: 60_000 }).toBe(3);
    process.kill(pid, "SIGSTOP");
    onTestFinished(() => goOn(pid));
    // Now a question waits for the supervisor, which reads it before it knows that the worker is dead.
    await expect(scrapeAny()).rejects.toThrow("503");
    process.kill(dying, "SIGKILL");
    await expect.poll(() => hasEnded(dying)).toBe(true);
    goOn(pid);
    expect(await Promise.race([restarted, once(child, "exit")])).toBeUndefined();
  });
});

/** Below those that are open, a process cannot open another. */
function limitDescriptors(pid: number, most: number): void {
  execFileSync("prlimit", [`--pid=${pid}`, `--nofile=${most}:`]);
}

/** Whether all threads are gone, and with them the descriptors; the supervisor may not know yet. */
function hasEnded(pid: number): boolean {
  return readdirSync(`/proc/${pid}/task`).length === 1 && /\) Z /.test(readFileSync(`/proc/${pid}/stat`, "utf8"));
}

/** One that was silent for long may have been replaced. */
function goOn(pid: number): void {
  try {
    process.kill(pid, "SIGCONT");
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== "ESRCH") throw error;
  }
}
