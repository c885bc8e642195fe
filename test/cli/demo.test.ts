import { once } from "node:events";
import { mkdirSync, readdirSync } from "node:fs";
import { createServer } from "node:net";
import { join } from "node:path";
import { request } from "undici";
import { describe, expect, it } from "vitest";
import { type CliFolder, createFolder, finished, lineFrom } from "./run-relay.js";

/** Tokens and keys of demo and sandbox begin so. */
const SECRET = /sandbox_at_|sandbox_rt_|relay_sk_/;

function folderWithTemp(): { folder: CliFolder; temp: string; env: { TMPDIR: string } } {
  const folder = createFolder();
  const temp = join(folder.path, "temp");
  mkdirSync(temp);
  return { folder, temp, env: { TMPDIR: temp } };
}

describe("relay demo --once", () => {
  it("makes a call over each protocol, shows what went and what came, and leaves nothing behind", async () => {
    const { folder, temp, env } = folderWithTemp();
    const result = await folder.run(["demo", "--once"], { env });
    expect(result).toMatchObject({ exitCode: 0, stderr: "" });
    for (const protocol of ["REST", "Connect", "gRPC"])
      expect(result.stdout).toContain(`--- ${protocol} ---\nsent to `);
    expect(result.stdout.match(/"pincStatus": "success"/g)).toHaveLength(3);
    expect(result.stdout).toContain('"login": "ada"');
    expect(result.stdout).not.toMatch(SECRET);
    expect(readdirSync(temp)).toEqual([]);
    expect(readdirSync(folder.path)).toEqual(["temp"]);
  });

  it("prints one line per call with --json", async () => {
    const { folder, env } = folderWithTemp();
    const { stdout } = await folder.run(["demo", "--once", "--json"], { env });
    const calls = stdout
      .trim()
      .split("\n")
      .map((line) => JSON.parse(line));
    expect(calls.map(({ protocol, received }) => [protocol, received.statusCode])).toEqual([
      ["REST", 200],
      ["Connect", 200],
      ["gRPC", 200],
    ]);
  });

  it("says so when the port it should use is taken", async () => {
    const taken = createServer().listen(0, "127.0.0.1");
    await once(taken, "listening");
    const { port } = taken.address() as { port: number };
    const { folder, temp, env } = folderWithTemp();
    const result = await folder.run(["demo", "--once", "--port", String(port)], { env });
    taken.close();
    expect(result).toMatchObject({ exitCode: 1, stdout: "" });
    expect(result.stderr).toBe(`Port ${port} is taken; choose another one with --port.\n`);
    expect(readdirSync(temp)).toEqual([]);
  });

  // Other tests may have the port for a while.
  it.each(["8081", "8090"])("leaves %s, which it uses itself, to the relay where it should", async (port) => {
    const { folder, env } = folderWithTemp();
    const run = async () => (await folder.run(["demo", "--once", "--port", port], { env })).exitCode;
    await expect.poll(run, { timeout: 60_000, interval: 1000 }).toBe(0);
  });
});

describe("relay demo", () => {
  it("takes a free port when the usual one is taken, and says so", async () => {
    // Taken by this test, or by somebody else already.
    const taken = createServer().listen(8080, "127.0.0.1");
    await once(taken, "listening").catch(() => {});
    const { folder, env } = folderWithTemp();
    const child = folder.start(["demo"], env);
    const ended = finished(child);
    const url = await lineFrom(child, (line) => /the relay at (http:\S+)\.$/.exec(line)?.[1]);
    child.kill("SIGTERM");
    const { exitCode, stderr } = await ended;
    taken.close();
    expect({ exitCode, stderr }).toEqual({
      exitCode: 0,
      stderr: "Port 8080 is taken, so the relay listens on a free one.\n",
    });
    expect(url).not.toMatch(/:8080$/);
  });

  it.each(["SIGINT", "SIGTERM"] as const)("goes on running until %s, and the lines it prints work", async (signal) => {
    const { folder, temp, env } = folderWithTemp();
    const child = folder.start(["demo", "--port", "0"], env);
    const ended = finished(child);
    const [url, body] = await lineFrom(child, (line) => /^ {2}curl '(.*)' -d '(.*)'$/.exec(line)?.slice(1));
    const answer = await request(url ?? "", { method: "POST", body: body ?? "" });
    expect(await answer.body.json()).toMatchObject({ rows: [{ pincStatus: "success", data: { login: "ada" } }] });
    expect(readdirSync(temp)).toHaveLength(1);
    // npm passes on what the terminal has already sent: the second one is no second Ctrl-C.
    child.kill(signal);
    if (signal === "SIGINT") child.kill(signal);
    const { exitCode, stdout, stderr } = await ended;
    expect({ exitCode, stderr }).toEqual({ exitCode: 0, stderr: "" });
    expect(readdirSync(temp)).toEqual([]);
    expect(stdout).not.toMatch(SECRET);
    const own = /^ {2}npx relay (call .*)$/m.exec(stdout)?.[1] ?? "";
    expect(own).toContain("--relay http://127.0.0.1:");
    expect(stdout.match(/^ {2}npx buf curl /gm)).toHaveLength(6);
  });
});
