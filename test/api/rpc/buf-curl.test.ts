import { execFile } from "node:child_process";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { type Harness, startHarness, type TestApplication } from "../../support/harness.js";

const ROOT = new URL("../../../", import.meta.url).pathname;
const PROTOCOLS = ["grpc", "grpcweb", "connect"];
const CALL = "relay.v1.RelayService/Call";

let harness: Harness;
let application: TestApplication;
let cache: string;

beforeAll(async () => {
  harness = await startHarness();
  application = await harness.createApplication();
  await harness.connect(application, "ada");
  cache = mkdtempSync(join(tmpdir(), "buf-cache-"));
});

afterAll(async () => {
  await harness.close();
  rmSync(cache, { recursive: true, force: true });
});

/** Runs buf with nothing cached, and with a proxy that refuses everything but this machine. */
function buf(...args: string[]): Promise<{ code: number; stdout: string; stderr: string }> {
  const nowhere = "http://127.0.0.1:1";
  const env = { ...process.env, BUF_CACHE_DIR: cache, HTTP_PROXY: nowhere, HTTPS_PROXY: nowhere };
  return new Promise((resolve) => {
    execFile(join(ROOT, "node_modules/.bin/buf"), args, { cwd: ROOT, env }, (error, stdout, stderr) => {
      resolve({ code: error === null ? 0 : Number(error.code), stdout, stderr });
    });
  });
}

function message(url: string): string {
  const { publicKey } = application;
  return JSON.stringify({
    provider_name: "sandbox",
    user_id: "ada",
    public_key: publicKey,
    call: { url, method: "GET" },
  });
}

describe("buf curl", () => {
  describe.each([
    ["with --schema proto", ["--schema", "proto"]],
    ["by reflection", []],
  ])("%s", (_how, schema) => {
    it.each(PROTOCOLS)("gets the envelope over %s", async (protocol) => {
      const me = message(`${harness.sandbox.origin}/me`);
      const args = ["--protocol", protocol, ...schema, `${harness.url}/${CALL}`, "-d", me];
      const { code, stdout, stderr } = await buf("curl", ...args);
      expect(stderr).toBe("");
      expect(JSON.parse(stdout)).toMatchObject({
        rows: [{ pincStatus: "success", statusCode: 200, contentType: "application/json", data: { login: "ada" } }],
      });
      expect(code).toBe(0);
    });
  });

  it.each(PROTOCOLS)("gets a refusal as a row, not as a failure, over %s", async (protocol) => {
    const evil = message("https://evil.test/");
    const { code, stdout } = await buf("curl", "--protocol", protocol, `${harness.url}/${CALL}`, "-d", evil);
    expect(JSON.parse(stdout)).toMatchObject({ rows: [{ pincStatus: "error", errorType: "URL_NOT_ALLOWED" }] });
    expect(code).toBe(0);
  });

  it.each(PROTOCOLS)("finds no method that is not there over %s", async (protocol) => {
    const url = `${harness.url}/relay.v1.RelayService/Nothing`;
    const { code, stderr } = await buf("curl", "--protocol", protocol, url, "-d", "{}");
    expect(stderr).toContain("Nothing");
    expect(code).not.toBe(0);
  });

  it("lists the services", async () => {
    const { stdout } = await buf("curl", "--list-services", harness.url);
    expect(stdout.trim().split("\n")).toEqual([
      "grpc.health.v1.Health",
      "grpc.reflection.v1.ServerReflection",
      "relay.v1.RelayService",
    ]);
  });

  it("lists the methods", async () => {
    const { stdout } = await buf("curl", "--list-methods", harness.url);
    expect(stdout.trim().split("\n")).toEqual([
      "grpc.health.v1.Health/Check",
      "grpc.health.v1.Health/List",
      "grpc.health.v1.Health/Watch",
      "grpc.reflection.v1.ServerReflection/ServerReflectionInfo",
      CALL,
      "relay.v1.RelayService/CallStream",
      "relay.v1.RelayService/CreateConnectLink",
      "relay.v1.RelayService/DeleteConnection",
      "relay.v1.RelayService/ListConnections",
    ]);
  });
});
