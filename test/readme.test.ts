import { execFile, spawn } from "node:child_process";
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join, resolve } from "node:path";
import { createInterface } from "node:readline";
import { promisify } from "node:util";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { documentPaths, readBlocks } from "./support/document-blocks.js";

const run = promisify(execFile);
const RELAY = resolve("dist/src/cli/relay.js");
/** Those about the demo stand in other documents, too. */
const blocks = documentPaths().flatMap(readBlocks);
const blocksOf = (where: string, language: string) =>
  blocks.filter((block) => block.mark === `run with ${where}` && block.language === language).map(({ text }) => text);

const SHELL = "set -euo pipefail\n";
/** For a dozen commands, each a process of its own. */
const TIMEOUT_MS = 120_000;

let folder: string;
let demo: ReturnType<typeof spawn>;
let relayUrl = "";
let sandboxOrigin = "";
let adminUrl = "";
let adminToken = "";

beforeAll(async () => {
  folder = mkdtempSync(join(tmpdir(), "relay-readme-"));
  demo = spawn(process.execPath, [RELAY, "demo", "--port", "0"], { stdio: ["ignore", "pipe", "inherit"] });
  for await (const line of createInterface({ input: demo.stdout as NodeJS.ReadableStream })) {
    const origins = /^The sandbox provider is at (\S+), the relay at (\S+)\.$/.exec(line);
    if (origins !== null) [, sandboxOrigin = "", relayUrl = ""] = origins;
    adminUrl = /administration port are at (\S+)\.$/.exec(line)?.[1] ?? adminUrl;
    adminToken = /^ {2}export ADMIN_TOKEN=(\S+)$/.exec(line)?.[1] ?? "";
    if (adminToken !== "") break;
  }
});

afterAll(async () => {
  const ended = new Promise((done) => demo.once("exit", done));
  demo.kill("SIGTERM");
  await ended;
  rmSync(folder, { recursive: true, force: true });
});

const here = (text: string) =>
  text
    .replaceAll("http://127.0.0.1:8080", relayUrl)
    .replaceAll("http://127.0.0.1:8081", adminUrl)
    .replaceAll("http://127.0.0.1:8090", sandboxOrigin)
    .replaceAll("127.0.0.1:8090", sandboxOrigin.replace("http://", ""));

describe("the README's commands", { timeout: TIMEOUT_MS }, () => {
  it("call the demo by curl and buf curl as they stand", async () => {
    const scripts = blocksOf("the demo", "sh");
    expect(scripts.length).toBeGreaterThan(1);
    for (const script of scripts) {
      const { stdout } = await run("bash", ["-c", SHELL + here(script)]);
      const calls = script.match(/^(curl|npx)/gm)?.length;
      expect(stdout.match(/"pincStatus":\s*"success"/g)).toHaveLength(calls ?? -1);
    }
  });

  it("call the demo and print what their marks say", async () => {
    const printing = blocks.filter(({ mark }) => mark?.startsWith("run with the demo; prints "));
    expect(printing.length).toBeGreaterThan(1);
    for (const { mark = "", text } of printing) {
      const { stdout } = await run("bash", ["-c", SHELL + here(text)]);
      expect(stdout).toContain(mark.slice("run with the demo; prints ".length));
    }
  });

  it("stream from the demo", async () => {
    const [raw = "", typed = ""] = blocksOf("the demo's streams", "sh");
    const { stdout } = await run("bash", ["-c", SHELL + here(raw)]);
    expect(stdout).toMatch(/^HTTP\/1.1 200 OK\r\n[\s\S]*x-call-id: [\s\S]*\r\n\r\naaaaa$/);
    const parts = (await run("bash", ["-c", SHELL + here(typed)])).stdout;
    expect(parts).toMatch(/"head":[\s\S]*"statusCode": ?200/);
    expect(parts.match(/"chunk"/g)?.length).toBeGreaterThan(1);
  });

  it("list what the demo's user has connected", async () => {
    const [script = ""] = blocksOf("the demo's connections", "sh");
    const { stdout } = await run("bash", ["-c", SHELL + here(script)]);
    expect(JSON.parse(stdout)).toMatchObject({ connections: [{ providerName: "sandbox", state: "ACTIVE" }] });
  });

  it("administer the demo", async () => {
    const [script = ""] = blocksOf("the demo's administration", "sh");
    const env = { ...process.env, ADMIN_TOKEN: adminToken };
    const { stdout } = await run("bash", ["-c", SHELL + here(script)], { env });
    expect(stdout).toMatch(/"userId":"ada","providerName":"sandbox","state":"STATE_ACTIVE"/);
    expect(stdout).toMatch(/"callsPerMinute": ?600/);
  });

  it("explain a call of the demo", async () => {
    const [script = ""] = blocksOf("the demo's console", "sh");
    const env = { ...process.env, ADMIN_TOKEN: adminToken };
    const { stdout } = await run("bash", ["-c", SHELL + here(script)], { env });
    expect(JSON.parse(stdout)).toMatchObject({
      egress: { allowed: true, rule: sandboxOrigin },
      request: { method: "GET", url: `${sandboxOrigin}/me` },
    });
  });

  it("call the demo from TypeScript as it stands", async () => {
    const made = mkdtempSync(resolve("dist/readme-"));
    const programs = blocksOf("the demo", "ts").map((program, at) => {
      writeFileSync(join(made, `${at}.mts`), here(program));
      return `await import("./${at}.mts");`;
    });
    // One after the other in one process: loading tsx takes longer than all of them.
    writeFileSync(join(made, "all.mts"), programs.join("\n"));
    const { stdout } = await run("npx", ["tsx", join(made, "all.mts")]).finally(() =>
      rmSync(made, { recursive: true }),
    );
    expect(programs).toHaveLength(4);
    expect(stdout).toMatch(/^200 \[ \{ id: 1, .*\n200 application\/json\n200 \{\s+sub: [^}]*\}\n\{\s+sub: [^}]*\}\n$/);
  });

  it("set up an application and a connection", async () => {
    const [script = ""] = blocksOf("a service", "sh");
    mkdirSync(join(folder, "data"));
    const env = { ...process.env, RELAY_DATABASE: `sqlite:${folder}/relay.db`, RELAY_KEY_FILE: `${folder}/relay.key` };
    const { stdout } = await run("bash", ["-c", SHELL + script], { cwd: folder, env });
    expect(stdout).toContain("api.github.com");
    expect(stdout).toContain("user-1");
    expect(stdout).toMatch(/\nGET https:\/\/api\.github\.com\/user\n[\s\S]*\nauthorization: Bearer \*\*\*\n/);
    expect(stdout).not.toContain("gho_example");
  });
});
