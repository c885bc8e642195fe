import { spawn } from "node:child_process";
import { once } from "node:events";
import { closeSync, openSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import type { Readable, Writable } from "node:stream";
import { text } from "node:stream/consumers";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { type Sandbox, startSandbox } from "../support/sandbox.js";
import { createFolder, type Env, RELAY } from "./run-relay.js";

let sandbox: Sandbox;
beforeAll(async () => {
  sandbox = await startSandbox();
});
afterAll(() => sandbox.close());

it("commands read standard input, work on the files of their environment and end by themselves, as processes", async () => {
  const folder = createFolder();
  writeFileSync(join(folder.path, "sandbox.json"), JSON.stringify(sandbox.providerDefinition()));
  const env = { RELAY_PROVIDERS: "sandbox.json", RELAY_ALLOW_LOOPBACK: "true" };
  const run = async (args: readonly string[], input?: object) => {
    const result = await folder.runProcess([...args, "--json"], {
      env,
      ...(input && { input: JSON.stringify(input) }),
    });
    expect([args, result]).toEqual([args, { exitCode: 0, stdout: expect.stringMatching(/^[[{]/), stderr: "" }]);
    return JSON.parse(result.stdout);
  };
  const { publicKey } = await run(["app", "create", "Shop", "--allow-redirect", "https://a.example/connected"]);
  const app = ["--app", publicKey];
  const account = [...app, "--provider", "sandbox", "--user", "ada"];
  await run(["client", "put", ...app, "--provider", "sandbox"], sandbox.client);
  await run(["connection", "put", ...account], sandbox.issueToken());
  const me = `${sandbox.origin}/me`;
  expect(await run(["call", "sandbox", me, ...app, "--user", "ada", "--explain"])).toMatchObject({
    egress: { allowed: true },
  });
  await run(["webhook", "put", ...app, "https://app.example/hook"]);
  expect(await run(["calls", "list", ...app])).toEqual([]);
  expect(await run(["key", "rotate"])).toMatchObject({ left: 0 });
  await run(["db", "backup", "copy.db"]);
  expect(await run(["connection", "delete", ...account])).toMatchObject({ revocation: "REVOKED" });
  expect((await run(["audit", "list"])).length).toBeGreaterThan(4);
}, 180_000);

describe.runIf(process.platform === "linux")("a command whose output meets a full disk", () => {
  /** Runs a command on the built files to its end. */
  async function run(args: readonly string[], env: Env = {}, input = ""): Promise<[number | null, string]> {
    const full = openSync("/dev/full", "w");
    const child = spawn(process.execPath, [RELAY, ...args], { env, stdio: ["pipe", full, "pipe"] });
    closeSync(full);
    (child.stdin as Writable).end(input);
    const [stderr, [exitCode]] = await Promise.all([text(child.stderr as Readable), once(child, "close")]);
    return [exitCode, stderr];
  }

  const FULL = [1, "Standard output: ENOSPC: no space left on device, write\n"];

  it("says so and fails", async () => {
    expect(await run(["--version"])).toEqual(FULL);
  });

  it("imports to the end, says so once and fails", async () => {
    const folder = createFolder();
    const { publicKey } = await folder.json(["app", "create", "Shop"]);
    const line = { application: publicKey, user: "ada", provider: "github", token: { access_token: "CANARY" } };
    const input = ['{"wrong":1}', '{"wrong":1}', JSON.stringify(line)].join("\n");
    expect(await run(["connection", "import"], folder.env, input)).toEqual(FULL);
    expect(await folder.json(["connection", "list", "--app", publicKey])).toMatchObject([{ user: "ada" }]);
    expect(await run(["connection", "import", "--json"], folder.env)).toEqual(FULL);
  });
});
