import { execFile, spawn } from "node:child_process";
import { readFileSync, rmSync, writeFileSync } from "node:fs";
import { resolve } from "node:path";
import { createInterface } from "node:readline";
import { promisify } from "node:util";
import { describe, expect, it, onTestFinished } from "vitest";
import { createFolder, startServiceHere } from "../cli/run-relay.js";
import { freePort } from "../support/free-port.js";

const run = promisify(execFile);
const LOOPBACK = { RELAY_ALLOW_LOOPBACK: "true" };
const document = readFileSync("docs/webhooks.md", "utf8");

function block(language: string): string {
  const found = new RegExp(`<!-- run with a webhook -->\n\`\`\`${language}\n([\\s\\S]+?)\`\`\``).exec(document)?.[1];
  if (found === undefined) throw new Error(`docs/webhooks.md has no ${language} block`);
  return found;
}

/** Starts the receiver of the document; its lines come one by one. */
function startReceiver(port: number, secret: string) {
  const file = resolve(`dist/readme-receiver-${port}.mts`);
  writeFileSync(file, block("ts").replace("9000", String(port)));
  const env = { ...process.env, WEBHOOK_SECRET: secret };
  const child = spawn(process.execPath, ["--import", "tsx", file], { stdio: ["ignore", "pipe", "inherit"], env });
  onTestFinished(() => {
    child.kill("SIGKILL");
    rmSync(file);
  });
  return createInterface({ input: child.stdout });
}

/** Lines up to the end of the first object that is printed; none of them is missed while something else is waited for. */
async function firstObject(lines: AsyncIterable<string>): Promise<string> {
  let printed = "";
  for await (const line of lines) {
    printed += `${line}\n`;
    if (line === "}") break;
  }
  return printed;
}

describe("docs/webhooks.md", () => {
  it("has commands that work as they stand", async () => {
    const folder = createFolder();
    const { publicKey } = await folder.json(["app", "create", "Shop"]);
    const shell = `set -eu; PUBLIC_KEY='${publicKey}'\n${block("sh")}`;
    const env = { PATH: process.env["PATH"] ?? "", ...folder.env };
    const { stdout } = await run("bash", ["-c", shell], { cwd: folder.path, env });
    expect(stdout).toMatch(/secret {2}whsec_/);
    expect(stdout).toMatch(/pending events {2}none/);
  });

  it("has a receiver that takes what the relay sends", async () => {
    const folder = createFolder();
    const port = await freePort();
    const { publicKey: app } = await folder.json(["app", "create", "Shop"]);
    const put = ["webhook", "put", "--app", app, `http://127.0.0.1:${port}/`];
    const { secret } = await folder.json(put, { env: LOOPBACK });
    const printed = firstObject(startReceiver(port, secret));
    const connection = ["connection", "put", "--app", app, "--user", "ada", "--provider", "github"];
    await folder.json(connection, { input: '{"access_token":"canary"}' });
    // Should the receiver not listen yet, the event comes again after five seconds.
    await startServiceHere(folder, LOOPBACK);
    expect(await printed).toMatch(/^msg_\S+ \{\n {2}type: 'connection\.created',/);
  });

  it("names every event and the shape of its body", () => {
    const types = readFileSync("src/webhooks/webhook-store.ts", "utf8").match(/"connection\.[a-z_]+"/g) ?? [];
    expect(types).toHaveLength(5);
    for (const type of types) expect(document).toContain(`| \`${type.slice(1, -1)}\` |`);
  });
});
