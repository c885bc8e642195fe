import { spawn } from "node:child_process";
import { once } from "node:events";
import { closeSync, openSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import type { Readable } from "node:stream";
import { text } from "node:stream/consumers";
import { afterAll, beforeAll, expect, it } from "vitest";
import { type Sandbox, startSandbox } from "../support/sandbox.js";
import { createFolder, RELAY } from "./run-relay.js";

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

it.runIf(process.platform === "linux")("a command whose output meets a full disk says so and fails", async () => {
  const full = openSync("/dev/full", "w");
  const child = spawn(process.execPath, [RELAY, "--version"], { stdio: ["ignore", full, "pipe"] });
  closeSync(full);
  const [stderr, [exitCode]] = await Promise.all([text(child.stderr as Readable), once(child, "close")]);
  expect([exitCode, stderr]).toEqual([1, "Standard output: ENOSPC: no space left on device, write\n"]);
});
