import { once } from "node:events";
import { Agent, request } from "undici";
import { describe, expect, it, onTestFinished } from "vitest";
import { createFolder, startServe } from "../cli/run-relay.js";

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

describe("a log that nobody reads", () => {
  it.each(["1", "2"])("holds nobody up, with %s processes, and loses nothing that it has room for", async (workers) => {
    const { url, child } = await startServe(createFolder(), { RELAY_WORKERS: workers });
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
    const ids = text.match(/r{120}-\d+(?=")/g)?.map((id) => Number(id.slice(121)));
    expect(ids?.sort((one, other) => one - other)).toEqual(Array.from({ length: CALLS }, (_, at) => at));
    child.kill("SIGTERM");
    expect(await once(child, "close")).toEqual([0, null]);
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
