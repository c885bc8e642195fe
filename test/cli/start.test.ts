import { type ChildProcessWithoutNullStreams, spawn } from "node:child_process";
import { once } from "node:events";
import { existsSync, mkdirSync, readdirSync, readFileSync, statSync, writeFileSync } from "node:fs";
import { createServer } from "node:net";
import { join } from "node:path";
import { request } from "undici";
import { describe, expect, it, onTestFinished } from "vitest";
import { type CliFolder, createFolder, finished, HAS_TERMINAL, RELAY, SCRIPT } from "./run-relay.js";

/** Ports of these processes are the system's: those of the settings may be in use by another test. */
const PORTS = { RELAY_LISTEN: "127.0.0.1:0", RELAY_ADMIN_LISTEN: "127.0.0.1:0" };

/** A command line as a new user types it: no setting comes from anywhere. */
function type(cwd: string, args: readonly string[], env: Record<string, string> = {}) {
  const child = spawn(process.execPath, [RELAY, ...args], { cwd, env: { PATH: process.env["PATH"] ?? "", ...env } });
  onTestFinished(async () => {
    if (child.exitCode === null && child.signalCode === null) {
      child.kill("SIGKILL");
      await once(child, "close");
    }
  });
  return child;
}

/** What standard error, unless told, says up to a text. */
function toldUntil(child: ChildProcessWithoutNullStreams, end: string, stream = child.stderr): Promise<string> {
  return new Promise((resolve, reject) => {
    let told = "";
    stream.on("data", (chunk) => {
      told += chunk;
      if (told.includes(end)) resolve(told);
    });
    child.once("close", () => reject(new Error(told)));
  });
}

async function startIn(folder: CliFolder, env = {}) {
  const child = type(folder.path, [], { ...PORTS, ...env });
  const told = await toldUntil(child, "app create'.");
  const [, origin = ""] = /console is at (http:\S+)\/console\/\./.exec(told) ?? [];
  return { child, told, origin };
}

/** The secret of a link to a relay that runs. */
async function newSecret(folder: CliFolder, origin: string, env = {}): Promise<string> {
  const made = await finished(type(folder.path, ["console", "--json"], { ...listenAt(origin), ...env }));
  const { link } = JSON.parse(made.stdout) as { link: string };
  expect(link.startsWith(`${origin}/console/#sign-in=`)).toBe(true);
  return link.split("=")[1] ?? "";
}

const listenAt = (origin: string) => ({ RELAY_ADMIN_LISTEN: new URL(origin).host });

async function signIn(origin: string, secret: string) {
  const headers = { authorization: `Bearer ${secret}` };
  const answer = await request(`${origin}/console/sign-in`, { method: "POST", headers });
  return { status: answer.statusCode, text: await answer.body.text() };
}

describe("relay without a command", () => {
  it("makes settings, keys, tokens and database, serves, and says in a pipe how to sign in, without a secret", async () => {
    const folder = createFolder();
    const { child, told, origin } = await startIn(folder);
    expect(told).not.toContain("#sign-in=");
    expect(told).toContain("Next: create an application in the console, or with 'relay app create'.");
    expect(readdirSync(join(folder.path, "data/spool")).filter((name) => name.endsWith(".sign-in"))).toEqual([]);
    const data = join(folder.path, "data");
    expect(told).toContain(`Created ${data} for settings, database and keys.`);
    for (const name of ["relay.env", "relay.key", "admin.tokens", "relay.db"]) {
      expect([name, statSync(join(data, name)).mode & 0o777]).toEqual([name, 0o600]);
    }
    expect(statSync(data).mode & 0o777).toBe(0o700);
    const secret = await newSecret(folder, origin);
    const { status, text } = await signIn(origin, secret);
    expect([status, Object.keys(JSON.parse(text))]).toEqual([200, ["token"]]);
    expect((await signIn(origin, secret)).status).toBe(403);

    const created = await finished(type(folder.path, ["app", "create", "Notes", "--json"]));
    expect([created.exitCode, created.stderr]).toEqual([0, ""]);
    const elsewhere = createFolder().path;
    const list = ["--env-file", join(data, "relay.env"), "app", "list", "--json"];
    expect(JSON.parse((await finished(type(elsewhere, list))).stdout)).toMatchObject([{ name: "Notes" }]);
    const lost = await finished(type(elsewhere, ["app", "list"]));
    expect(lost.exitCode).toBe(2);
    expect(lost.stderr).toContain(`RELAY_DATABASE: ${join(elsewhere, "data/relay.db")} does not exist.`);
    expect(lost.stderr).toContain("--env-file FILE");

    const ended = once(child, "close");
    child.kill("SIGTERM");
    expect(await ended).toEqual([0, null]);
  });

  it("starts what is there the next time, and changes no file of it", async () => {
    const folder = createFolder();
    const first = await startIn(folder);
    const secret = await newSecret(folder, first.origin);
    first.child.kill("SIGTERM");
    await once(first.child, "close");
    const file = (name: string) => readFileSync(join(folder.path, "data", name), "utf8");
    const before = ["relay.env", "relay.key", "admin.tokens"].map(file);
    const again = await startIn(folder);
    expect(again.told).not.toContain("Created");
    expect(["relay.env", "relay.key", "admin.tokens"].map(file)).toEqual(before);
    // One that nobody opened is still good.
    expect((await signIn(again.origin, secret)).status).toBe(200);
  });

  it("serves with workers, any of which takes the link and the session", async () => {
    const folder = createFolder();
    const { child, origin } = await startIn(folder, { RELAY_WORKERS: "2" });
    const secret = await newSecret(folder, origin);
    const { token } = JSON.parse((await signIn(origin, secret)).text) as { token: string };
    const statuses = await Promise.all(
      Array.from({ length: 8 }, async () => {
        const headers = { authorization: `Bearer ${token}`, "content-type": "application/json", connection: "close" };
        const url = `${origin}/relay.admin.v1.SessionService/GetSession`;
        const answer = await request(url, { method: "POST", headers, body: "{}" });
        await answer.body.dump();
        return answer.statusCode;
      }),
    );
    expect(new Set(statuses)).toEqual(new Set([200]));
    child.kill("SIGTERM");
    await once(child, "close");
    expect(readdirSync(join(folder.path, "data")).filter((name) => name.endsWith(".env"))).toEqual(["relay.env"]);
  });

  it("chooses ports that are free, and keeps them", async () => {
    const taken = createServer().listen(8080, "127.0.0.1");
    // By this test, or by somebody else already.
    await once(taken, "listening").catch(() => {});
    onTestFinished(() => void taken.close());
    const folder = createFolder();
    await startIn(folder);
    const settings = readFileSync(join(folder.path, "data/relay.env"), "utf8");
    const ports = [...settings.matchAll(/LISTEN=127\.0\.0\.1:(\d+)$/gm)].map(([, port]) => Number(port));
    expect(ports).toHaveLength(2);
    expect(ports).not.toContain(8080);
    expect(new Set(ports).size).toBe(2);
  });

  it("makes nothing where a database is named, or one is there", async () => {
    const folder = createFolder();
    await startIn(folder, folder.env);
    expect(existsSync(join(folder.path, "data"))).toBe(false);
    const other = createFolder();
    mkdirSync(join(other.path, "data"));
    writeFileSync(join(other.path, "data/relay.db"), "");
    const { exitCode } = await finished(type(other.path, [], PORTS));
    expect(exitCode).not.toBe(0);
    expect(readdirSync(join(other.path, "data"))).toEqual(["relay.db"]);
  });
});

describe("relay at a terminal", HAS_TERMINAL, () => {
  /** What it says at its start. */
  async function startAtTerminal(folder: CliFolder, more = {}): Promise<string> {
    const line = [process.execPath, RELAY].map((word) => `'${word}'`).join(" ");
    const env = { PATH: process.env["PATH"] ?? "", ...PORTS, ...more };
    const child = spawn(SCRIPT, ["-qec", line, "/dev/null"], { cwd: folder.path, env });
    // Ctrl-C: killing what holds the terminal would leave the relay.
    const stop = async () => {
      if (child.exitCode !== null) return;
      child.stdin.write("\x03");
      await once(child, "close");
    };
    onTestFinished(stop);
    return toldUntil(child, "app create'.", child.stdout);
  }

  it("prints a link that signs in once", async () => {
    const told = await startAtTerminal(createFolder());
    expect(told).toContain("'relay console' creates another one.");
    const [, origin = "", secret = ""] = /(http:\S+)\/console\/#sign-in=([\w-]+)/.exec(told) ?? [];
    expect((await signIn(origin, secret)).status).toBe(200);
    expect((await signIn(origin, secret)).status).toBe(403);
  });

  it("says why there is no link, and how to get one, in the place of the link", async () => {
    const folder = createFolder();
    const file = join(folder.path, "readers.tokens");
    writeFileSync(file, `ada read-only ${"r".repeat(32)}\n`, { mode: 0o600 });
    const told = (await startAtTerminal(folder, { RELAY_ADMIN_TOKEN_FILE: file })).replaceAll("\r", "");
    const problem = `RELAY_ADMIN_TOKEN_FILE: ${file} has no operator to sign in.`;
    expect(told).toContain(
      `/console/. No sign-in link could be created:\n\n  ${problem}\n\nFix this, then run 'relay console' to get a link.\n`,
    );
    expect(told).not.toContain("This link");
  });

  it("goes on serving when a fault of its own leaves no link, and reports that without the error's message", async () => {
    const folder = createFolder();
    const fault = join(folder.path, "fault.cjs");
    writeFileSync(
      fault,
      `const fs = require("node:fs");
const { writeFile } = fs.promises;
fs.promises.writeFile = async (file, ...rest) => {
  if (String(file).includes(".sign-in")) throw new TypeError("CANARY");
  return writeFile(file, ...rest);
};
require("node:module").syncBuiltinESMExports();
`,
    );
    const told = (await startAtTerminal(folder, { NODE_OPTIONS: `--require=${fault}` })).replaceAll("\r", "");
    const [, url = ""] = /^The relay runs at (http:\S+)\. Ctrl-C/m.exec(told) ?? [];
    expect(told).toMatch(/\/console\/\. No sign-in link could be created \(TypeError at .+\)\. Please report this\.$/m);
    expect(told).not.toContain("CANARY");
    const answer = await request(url);
    await answer.body.dump();
    expect(answer.statusCode).toBe(200);
  });
});

describe("relay console", () => {
  it("prints another link to a relay that runs, and says what is wrong where none can be made", async () => {
    const folder = createFolder();
    const { origin } = await startIn(folder);
    expect((await signIn(origin, await newSecret(folder, origin))).status).toBe(200);
    const off = await folder.run(["console"]);
    expect(off).toMatchObject({
      exitCode: 2,
      stdout: "",
      stderr: expect.stringContaining("RELAY_ADMIN_LISTEN is off"),
    });
    const env = { RELAY_ADMIN_LISTEN: "127.0.0.1:8081" };
    const other = createFolder();
    const none = await other.run(["console"], { env });
    expect(none).toMatchObject({ exitCode: 2, stdout: "" });
    expect(none.stderr).toMatch(/^RELAY_ADMIN_TOKEN_FILE: \S+ does not exist\. Start the relay first/);
    writeFileSync(join(other.path, "admin.tokens"), `ada operator ${"o".repeat(32)}\n`, { mode: 0o600 });
    const early = await other.run(["console"], { env });
    expect(early).toMatchObject({ exitCode: 1, stdout: "" });
    expect(early.stderr).toMatch(
      /^RELAY_SPOOL: the link cannot be stored in \S+spool \(ENOENT\)\. Start the relay first/,
    );
  });
});
