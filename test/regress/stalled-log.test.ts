import { execFileSync, spawn } from "node:child_process";
import { once } from "node:events";
import { closeSync, constants, openSync, readSync } from "node:fs";
import { join } from "node:path";
import { setTimeout as delay } from "node:timers/promises";
import { Agent, request } from "undici";
import { describe, expect, it, onTestFinished } from "vitest";
import { createFolder, RELAY, startServe } from "../cli/run-relay.js";

/** More lines than a pipe or a socket holds, each with an id of 128 characters. */
const CALLS = 900;

async function call(url: string, dispatcher: Agent, at: number): Promise<number> {
  const answer = await request(`${url}/oauth/method/nobody/call?user_id=u&public_key=none_at_all`, {
    method: "POST",
    headers: { "x-request-id": `${"r".repeat(120)}-${at}` },
    body: '{"url":"https://api.example.com/","method":"GET"}',
    dispatcher,
  });
  await answer.body.dump();
  return answer.statusCode;
}

/** Of the calls that are logged. */
function idsIn(text: string): number[] {
  const ids = text.match(/r{120}-\d+(?=")/g)?.map((id) => Number(id.slice(121))) ?? [];
  return ids.sort((one, other) => one - other);
}

/** A pipe, where spawn() would make a socket: reads at most so many octets of it; none where none wait. */
function createPipe(folder: string) {
  const path = join(folder, "log");
  execFileSync("mkfifo", [path]);
  const reader = openSync(path, constants.O_RDONLY | constants.O_NONBLOCK);
  const writer = openSync(path, constants.O_WRONLY);
  onTestFinished(() => closeSync(reader));
  const buffer = Buffer.alloc(3000);
  const read = () => {
    try {
      return buffer.toString("latin1", 0, readSync(reader, buffer));
    } catch {
      return ""; // EAGAIN
    }
  };
  return { writer, read };
}

describe("a log that nobody reads", () => {
  it("holds nobody up, and loses nothing that it has room for", async () => {
    const { url, child } = await startServe(createFolder());
    const dispatcher = new Agent({ connections: 16 });
    onTestFinished(() => dispatcher.close());
    child.stdout.pause();
    child.stderr.pause();
    for (let at = 0; at < CALLS; at += 50) {
      const calls = Array.from({ length: 50 }, (_, more) => call(url, dispatcher, at + more));
      expect(await Promise.all(calls)).toEqual(calls.map(() => 200));
    }
    const health = await request(`${url}/healthz`, { dispatcher });
    expect(await health.body.text()).toBe("ok\n");
    let text = "";
    const seen = new Promise<void>((resolve) => {
      child.stdout.on("data", (chunk) => {
        text += chunk;
        if ((text.match(/"msg":"call"/g)?.length ?? 0) >= CALLS) resolve();
      });
    });
    child.stdout.resume();
    await seen;
    expect(idsIn(text)).toEqual(Array.from({ length: CALLS }, (_, at) => at));
    child.kill("SIGTERM");
    expect(await once(child, "close")).toEqual([0, null]);
  });

  it("keeps the lines of several workers whole when it is read again, little by little", async () => {
    const { path, env } = createFolder();
    const { writer, read } = createPipe(path);
    const settings = { PATH: process.env["PATH"] ?? "", ...env, RELAY_LISTEN: "127.0.0.1:0", RELAY_WORKERS: "2" };
    const stdio = ["ignore", writer, "inherit"] as const;
    const child = spawn(process.execPath, [RELAY, "serve"], { cwd: path, env: settings, stdio: [...stdio] });
    closeSync(writer);
    const ended = once(child, "exit");
    onTestFinished(() => void child.kill("SIGKILL"));
    let text = "";
    const readUntil = async (isDone: () => boolean) => {
      for (; !isDone(); text += read()) await delay(2);
    };
    await readUntil(() => text.includes('"msg":"listening"'));
    const url = /"url":"([^"]+)"/.exec(text)?.[1] ?? "";
    for (let at = 0; at < CALLS; at += 30) {
      // Connections of their own, so that each worker gets half of them.
      const dispatcher = new Agent();
      await Promise.all(Array.from({ length: 30 }, (_, more) => call(url, dispatcher, at + more)));
      await dispatcher.close();
    }
    await readUntil(() => (text.match(/"msg":"call"/g)?.length ?? 0) >= CALLS);
    child.kill("SIGTERM");
    expect(await ended).toEqual([0, null]);
    const lines = text.slice(0, text.lastIndexOf("\n")).split("\n");
    expect(new Set(lines.map((line) => JSON.parse(line).worker)).size).toBeGreaterThanOrEqual(2);
    expect(idsIn(text)).toEqual(Array.from({ length: CALLS }, (_, at) => at));
  });

  it("does not keep the process from ending", async () => {
    const { url, child } = await startServe(createFolder());
    const dispatcher = new Agent({ connections: 16 });
    onTestFinished(() => dispatcher.close());
    child.stdout.pause();
    for (let at = 0; at < CALLS; at += 50) {
      await Promise.all(Array.from({ length: 50 }, (_, more) => call(url, dispatcher, at + more)));
    }
    child.kill("SIGTERM");
    expect(await once(child, "exit")).toEqual([0, null]);
    child.stdout.destroy();
  });
});
