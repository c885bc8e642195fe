import { execFileSync } from "node:child_process";
import cluster, { type Worker } from "node:cluster";
import { EventEmitter, once } from "node:events";
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { pino } from "pino";
import { describe, expect, it, onTestFinished, vi } from "vitest";
import { supervise } from "../../src/workers/supervisor.js";
import type { Message } from "../../src/workers/worker.js";
import { finished, lineFrom } from "../cli/run-relay.js";
import { connectRaw } from "../http/support.js";
import { freePort } from "../support/free-port.js";
import {
  callOnce,
  createConnected,
  POLLING,
  prepareWorkers,
  sandbox,
  startWorkers,
  useSandbox,
  workersOf,
} from "./world.js";

useSandbox();

const MIB = 2 ** 20;

// One after another: a worker must serve within half a minute, and each relay is three processes.
describe("workers that all end or start", { timeout: 180_000 }, () => {
  it("replaces all workers when they end at once, again and again, and can be stopped meanwhile", async ({
    expect,
    onTestFinished,
  }) => {
    // The system would choose another port for those that come after all have ended.
    const { child, workers, call } = await startWorkers(onTestFinished, {
      RELAY_LISTEN: `127.0.0.1:${await freePort()}`,
    });
    // More often than without a pause, if whoever kills them were a sign that they cannot live.
    for (let round = 0; round < 2; round++) {
      const before = workers();
      for (const pid of before) process.kill(pid, "SIGKILL");
      const fresh = () => workers().filter((pid) => pid > 0 && !before.includes(pid)).length;
      await expect.poll(fresh, POLLING).toBe(2);
    }
    await expect.poll(() => call().catch(() => "refused"), POLLING).toBe("success");
    for (const pid of workers()) process.kill(pid, "SIGKILL");
    child.kill("SIGTERM");
    // 1 where it comes before the workers have ended: they did not end well.
    expect([
      [0, null],
      [1, null],
    ]).toContainEqual(await once(child, "close"));
  });

  it.each([
    ["no file descriptors", "nofile", 1, 1024],
    // Environment and arguments of a process may take a quarter of this. Node.js throws, as for want of memory.
    ["no room for its environment", "stack", 2 * MIB, 8 * MIB],
  ])(
    "goes on while the system cannot start a process, and replaces workers when it can: %s",
    async (_, resource, low, usual) => {
      const padding = Object.fromEntries(
        Array.from({ length: 6 }, (_, index) => [`PADDING_${index}`, "x".repeat(1e5)]),
      );
      const { child, workers, logged, call } = await startWorkers(onTestFinished, padding);
      const limitTo = (value: number) => execFileSync("prlimit", [`--pid=${child.pid}`, `--${resource}=${value}:`]);
      limitTo(low);
      const before = workers();
      const givenUp = logged("the new worker could not start; the others continue");
      child.kill("SIGHUP");
      await givenUp;
      expect(workers()).toEqual(before);
      const refused = logged("the system cannot start a process for a worker");
      process.kill(before[0] as number, "SIGKILL");
      await refused;
      limitTo(usual);
      await expect.poll(() => workers().length, POLLING).toBe(2);
      expect(await call()).toBe("success");
    },
  );

  it("starts anew once more for a SIGHUP that comes while it does", async ({ expect, onTestFinished }) => {
    const { url, child, workers, logged, folder, publicKey } = await startWorkers(onTestFinished);
    const define = (displayName: string) => {
      const definition = { ...sandbox.providerDefinition("sandbox"), apiOrigins: [`https://${displayName}.example`] };
      writeFileSync(join(folder.path, "sandbox.json"), JSON.stringify(definition));
    };
    const restarted = logged("restarted");
    define("first");
    child.kill("SIGHUP");
    const before = workers();
    // One that reads the first change has been started.
    await expect.poll(() => workers().some((pid) => !before.includes(pid)), POLLING).toBe(true);
    define("second");
    child.kill("SIGHUP");
    await restarted;
    const body = JSON.stringify({ url: "https://second.example/", method: "GET" });
    const target = `${url}/oauth/method/sandbox/call?user_id=ada&public_key=${publicKey}`;
    const outcomes: string[] = [];
    for (let calls = 0; calls < 4; calls++) outcomes.push(await callOnce(target, body));
    expect(new Set(outcomes)).not.toContain("URL_NOT_ALLOWED");
  });

  it("records the calls of all workers, also those that were made just before the end, and ends with 0", async ({
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

  it("tells all workers to end as soon as it is told, also while it replaces one, and ends at once when told again", async ({
    expect,
    onTestFinished,
  }) => {
    const { child, url, lines, workers } = await startWorkers(onTestFinished);
    const holding = workers();
    // One on each worker, since connections go to them in turn.
    for (const _ of [1, 2]) {
      const { socket } = await connectRaw(Number(new URL(url).port));
      socket.write("POST /oauth/method/sandbox/call?user_id=ada HTTP/1.1\r\nHost: a\r\nContent-Length: 9\r\n\r\n{");
    }
    const seen: Array<{ msg: string; worker?: number }> = [];
    lines.on("line", (line) => seen.push(JSON.parse(line)));
    const sayThat = (wanted: string) =>
      seen.filter(({ msg, worker = 0 }) => msg === wanted && holding.includes(worker));
    child.kill("SIGHUP");
    await expect.poll(() => sayThat("stopping").length, POLLING).toBe(1);
    child.kill("SIGTERM");
    await expect.poll(() => sayThat("stopping").length, POLLING).toBe(2);
    expect(sayThat("stopped")).toEqual([]);
    const ended = once(child, "close");
    child.kill("SIGTERM");
    expect(await ended).toEqual([1, null]);
    expect(sayThat("stopped")).toEqual([]);
  });

  it.each([
    ["alone", (_workers: readonly number[]) => {}],
    ["and its worker", ([worker = 0]: readonly number[]) => void process.kill(worker, "SIGTERM")],
  ])("ends well when it is told while it starts: the supervisor %s", async (_, also) => {
    const { folder, settings } = await prepareWorkers();
    const child = folder.start(["serve"], settings);
    const output = finished(child);
    const workers = () => workersOf(child.pid).filter((pid) => pid > 0);
    await vi.waitUntil(() => workers().length > 0, POLLING);
    const first = workers();
    child.kill("SIGTERM");
    also(first);
    const { exitCode, stdout } = await output;
    expect(exitCode).toBe(0);
    expect(stdout).toContain('"stopping"');
    expect(stdout).not.toContain('"listening"');
  });

  it("starts another first worker where that is told to end while it starts", async () => {
    const { folder, settings } = await prepareWorkers();
    const child = folder.start(["serve"], settings);
    const output = finished(child);
    const workers = () => workersOf(child.pid).filter((pid) => pid > 0);
    await vi.waitUntil(() => workers().length > 0, POLLING);
    for (const worker of workers()) process.kill(worker, "SIGTERM");
    await lineFrom(child, (line) => line.includes('"listening"') || undefined);
    child.kill("SIGTERM");
    expect((await output).exitCode).toBe(0);
  });

  it("finishes calls in flight when the supervisor is killed, also those that count against a limit", async () => {
    const { child, url, folder, lines } = await startWorkers(onTestFinished);
    const publicKey = await createConnected(folder, "limited", "--calls-per-minute", "5");
    const stopping: string[] = [];
    lines.on("line", (line) => line.includes('"stopping"') && stopping.push(line));
    const body = JSON.stringify({ url: `${sandbox.origin}/me`, method: "GET" });
    const head = [
      `POST /oauth/method/sandbox/call?user_id=limited&public_key=${publicKey} HTTP/1.1`,
      ...["Host: a", "Expect: 100-continue", `Content-Length: ${body.length}`, "", ""],
    ];
    const callers = [];
    for (const _ of [1, 2]) {
      const caller = await connectRaw(Number(new URL(url).port));
      caller.socket.write(head.join("\r\n"));
      await caller.received("100 Continue");
      callers.push(caller);
    }
    child.kill("SIGKILL");
    await expect.poll(() => stopping.length, POLLING).toBe(2);
    for (const { socket } of callers) socket.write(body);
    for (const { closed } of callers) expect(await closed).toContain('"pincStatus":"success"');
  });

  it("ends its workers when the supervisor is killed", async ({ expect, onTestFinished }) => {
    const { child, workers } = await startWorkers(onTestFinished);
    const pids = workers();
    child.kill("SIGKILL");
    const isAlive = (pid: number) => {
      try {
        return process.kill(pid, 0);
      } catch {
        return false;
      }
    };
    await expect.poll(() => pids.filter(isAlive), POLLING).toEqual([]);
  });
});

describe("many workers that crash at once", { timeout: 60_000 }, () => {
  it("print no warning of Node.js while they wait to be replaced", async () => {
    const folder = mkdtempSync(join(tmpdir(), "workers-"));
    const exec = join(folder, "worker.cjs");
    const says: Message = { type: "started", url: "", adminUrl: undefined };
    writeFileSync(exec, `process.send(${JSON.stringify(says)}); process.on("message", () => process.exit());`);
    cluster.setupPrimary({ exec, args: [] });
    const warnings: Error[] = [];
    const onWarning = (warning: Error) => warnings.push(warning);
    process.on("warning", onWarning);
    onTestFinished(() => {
      process.off("warning", onWarning);
      rmSync(folder, { recursive: true });
    });

    const events = new EventEmitter();
    const stop = once(events, "stop").then(() => {});
    const started = once(events, "started");
    const options = { count: 12, logger: pino({ level: "silent" }), stop, graceMs: 1000 };
    const ended = supervise({ ...options, started: () => events.emit("started") });
    await started;
    const crashes = Object.values(cluster.workers ?? {}).map((worker) => {
      worker?.process.kill("SIGUSR2");
      return once(worker as Worker, "exit");
    });
    await Promise.all(crashes);
    events.emit("stop");
    await ended;
    expect(crashes).toHaveLength(12);
    expect(warnings).toEqual([]);
  });
});
