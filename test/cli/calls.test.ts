import { execFile } from "node:child_process";
import { readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { promisify } from "node:util";
import Database from "better-sqlite3";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { postRest } from "../support/callers.js";
import { type Sandbox, startSandbox } from "../support/sandbox.js";
import { type CliFolder, createFolder, prepareOnce, startServiceHere } from "./run-relay.js";

let sandbox: Sandbox;
beforeAll(async () => {
  sandbox = await startSandbox();
});
afterAll(() => sandbox.close());

/** A service, an application, and a call that found no user's connection; the service has ended. */
const folderWithCall = prepareOnce((folder) => makeCall(folder));
const folderWithCapture = prepareOnce((folder) => makeCall(folder, { isCaptured: true }));

async function makeCall(folder: CliFolder, { isCaptured = false } = {}) {
  const definition = join(folder.path, "sandbox.json");
  writeFileSync(definition, JSON.stringify({ ...sandbox.providerDefinition("sandbox"), aliases: ["playground"] }));
  const settings = { RELAY_PROVIDERS: definition, RELAY_ALLOW_LOOPBACK: "true" };
  const { publicKey } = await folder.json(["app", "create", "Shop"]);
  if (isCaptured) await folder.run(["app", "capture", "Shop", "--minutes", "1"]);
  const { url, close } = await startServiceHere(folder, settings);
  const call = async (path: string) => {
    const headers = { authorization: "Bearer CANARY-0123456789" };
    const description = { url: `${sandbox.origin}${path}`, method: "GET", headers };
    const { text } = await postRest(url, { providerName: "sandbox", userId: "ada", publicKey, call: description });
    return String(JSON.parse(text).rows[0].callId);
  };
  const callId = await call("/me?access_token=CANARY&page=2");
  await close();
  return { publicKey: publicKey as string, callId };
}

const shown = (folder: CliFolder, callId: string) => folder.json(["calls", "show", callId]);

describe("relay calls", () => {
  it("lists and shows what was recorded, for programs and for a person", async () => {
    const { folder, publicKey, callId } = await folderWithCall();
    const [call, ...others] = await folder.json(["calls", "list", "--app", publicKey]);
    expect(others).toEqual([]);
    expect(call).toEqual({
      callId,
      time: expect.stringMatching(/^\d{4}-\d\d-\d\dT.*Z$/),
      surface: "rest",
      provider: "sandbox",
      method: "GET",
      origin: sandbox.origin,
      path: "/me",
      queryKeys: ["access_token", "page"],
      status: 401,
      errorType: "INVALID_OAUTHID",
      rule: sandbox.origin,
      cause: null,
      totalMs: expect.any(Number),
      queueMs: null,
      tokenMs: null,
      providerMs: null,
      requestBytes: 0,
      responseBytes: 0,
      captured: false,
      requestId: null,
    });
    expect(await shown(folder, callId)).toEqual({ ...call, capture: null });
    const list = await folder.run(["calls", "list", "--app", publicKey]);
    expect(list.stdout).toMatch(/^TIME +PROVIDER .*\n\S+ +sandbox +GET +http.*\/me +401 +INVALID_OAUTHID +[\d.]+ +- /);
    const show = await folder.run(["calls", "show", callId]);
    expect(show.stdout).toContain("status          401 INVALID_OAUTHID\n");
    expect(list.stdout + show.stdout).not.toContain("CANARY");
  });

  it("lists what the options name", async () => {
    const { folder, publicKey } = await folderWithCall();
    const count = async (...options: string[]) =>
      (await folder.json(["calls", "list", "--app", publicKey, ...options])).length;
    expect(await count("--error-type", "INVALID_OAUTHID", "--provider", "sandbox")).toBe(1);
    expect(await count("--error-type", "API_ERROR")).toBe(0);
    expect(await count("--provider", "github")).toBe(0);
    const env = { RELAY_PROVIDERS: "sandbox.json", RELAY_ALLOW_LOOPBACK: "true" };
    const countOf = async (provider: string) =>
      (await folder.json(["calls", "list", "--app", publicKey, "--provider", provider], { env })).length;
    expect(await countOf("playground")).toBe(1);
    // The provider has got another name since then; the old one still reaches it.
    const renamed = { ...sandbox.providerDefinition("sandbox"), name: "lab", aliases: ["sandbox"] };
    writeFileSync(join(folder.path, "lab.json"), JSON.stringify(renamed));
    env.RELAY_PROVIDERS = "lab.json";
    expect([await countOf("lab"), await countOf("sandbox")]).toEqual([1, 1]);
  });

  it("shows headers and bodies of a captured call, without credentials", async () => {
    const { folder, callId } = await folderWithCapture();
    const { capture } = await shown(folder, callId);
    expect(capture.request).toEqual({
      isSent: false,
      method: "GET",
      url: `${sandbox.origin}/me?access_token=[masked]&page=2`,
      headers: [["authorization", "[masked]"]],
    });
    const { stdout } = await folder.run(["calls", "show", callId]);
    expect(stdout).toContain("Described by the caller, not sent:\nGET http");
    expect(stdout).toContain("The caller was told: This user has no connection");
    expect(stdout).not.toContain("CANARY");
    expect(await folder.json(["key", "rotate"])).toMatchObject({ resealed: 2, left: 0 });
    expect(await shown(folder, callId)).toMatchObject({ capture });
    const database = new Database(join(folder.path, "relay.db"));
    database.exec("UPDATE call_captures SET content = substr(content, 1, length(content) - 1)");
    database.close();
    expect(await shown(folder, callId)).toMatchObject({ callId, captured: true, capture: null });
    const { exitCode, stderr } = await folder.run(["calls", "show", callId]);
    expect([exitCode, stderr]).toEqual([0, expect.stringMatching(/^The capture cannot be opened: /)]);
  });

  it("says when there is no such call or application", async () => {
    const folder = createFolder();
    await folder.json(["app", "create", "Shop"]);
    const call = await folder.run(["calls", "show", "0190a0a0-0000-7000-8000-000000000000"]);
    expect(call).toMatchObject({ exitCode: 1, stdout: "" });
    expect(call.stderr).toMatch(/^There is no record of this call/);
    const list = await folder.run(["calls", "list", "--app", "nobody"]);
    expect(list).toMatchObject({ exitCode: 1, stdout: "" });
    expect(list.stderr).toMatch(/^There is no application with this public key/);
  });

  it("is as docs/call-records.md shows it", async () => {
    const { folder, publicKey, callId } = await folderWithCall();
    const [, script = ""] =
      /<!-- run with calls -->\n```sh\n([\s\S]+?)```/.exec(readFileSync("docs/call-records.md", "utf8")) ?? [];
    const env = { ...process.env, ...folder.env, PUBLIC_KEY: publicKey, CALL_ID: callId };
    const { stdout } = await promisify(execFile)("bash", ["-euo", "pipefail", "-c", script], { cwd: folder.path, env });
    expect(stdout.match(new RegExp(callId, "g"))).toHaveLength(3);
    expect(stdout).toMatch(/Calls are captured until \S+Z\.\nCapturing has stopped\.\n$/);
  });
});

describe("relay app capture", () => {
  it("takes a key or a name, says until when, and is off again", async () => {
    const folder = createFolder();
    const { publicKey } = await folder.json(["app", "create", "Shop"]);
    const before = Date.now();
    const { captureUntil, ...rest } = await folder.json(["app", "capture", publicKey]);
    expect(rest).toEqual({ publicKey });
    expect(Date.parse(captureUntil) - before).toBeGreaterThanOrEqual(10 * 60_000);
    expect(Date.parse(captureUntil) - Date.now()).toBeLessThanOrEqual(10 * 60_000);
    expect(await folder.json(["app", "show", publicKey])).toMatchObject({ captureUntil });
    expect((await folder.run(["app", "show", publicKey])).stdout).toContain(`until ${captureUntil}\n`);
    expect(await folder.json(["app", "capture", "Shop", "--off"])).toEqual({ publicKey, captureUntil: null });
    expect(await folder.json(["app", "show", publicKey])).toMatchObject({ captureUntil: null });
  });

  it.each([
    ["no time", ["Shop", "--minutes", "0"], 2, /from 1 to 60/],
    ["more than an hour", ["Shop", "--minutes", "61"], 2, /from 1 to 60/],
    ["a time and an end", ["Shop", "--minutes", "1", "--off"], 2, /cannot be used with/],
    ["a name of several", ["Shop"], 1, /Several applications have this name/],
    ["a name of none", ["Nobody"], 1, /There is no application/],
  ])("refuses %s", async (_, args, exitCode, problem) => {
    const folder = createFolder();
    for (let times = 0; times < 2; times += 1) await folder.run(["app", "create", "Shop"]);
    const result = await folder.run(["app", "capture", ...args]);
    expect(result).toMatchObject({ exitCode, stdout: "" });
    expect(result.stderr).toMatch(problem);
  });
});
