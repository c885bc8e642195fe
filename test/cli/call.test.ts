import { createHmac } from "node:crypto";
import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { type Sandbox, startSandbox } from "../../src/sandbox/sandbox.js";
import { type CliFolder, createFolder, startServe } from "./run-relay.js";

let sandbox: Sandbox;
beforeEach(async () => {
  sandbox = await startSandbox();
});
afterEach(() => sandbox.close());

/** A running relay with a connected user; `call` runs `relay call` against it. */
async function startRelay(appOptions: readonly string[] = []) {
  const folder = createFolder();
  writeFileSync(join(folder.path, "sandbox.json"), JSON.stringify(sandbox.providerDefinition()));
  const env = { RELAY_PROVIDERS: "sandbox.json", RELAY_ALLOW_LOOPBACK: "true" };
  const { publicKey, privateKey } = await folder.json(["app", "create", "Shop", ...appOptions]);
  const put = ["connection", "put", "--app", publicKey, "--user", "ada", "--provider", "sandbox"];
  await folder.json(put, { input: JSON.stringify(sandbox.issueToken()), env });
  const { url, child } = await startServe(folder, env);
  const call = (path: string, options: readonly string[] = [], run: Parameters<CliFolder["run"]>[1] = {}) =>
    folder.run(
      ["call", "sandbox", `${sandbox.origin}${path}`, "--app", publicKey, "--user", "ada", "--relay", url, ...options],
      run,
    );
  return { folder, url, child, publicKey, privateKey, call };
}

/** Of the relay that would make the call. */
const EXPLAIN_ENV = { RELAY_PROVIDERS: "sandbox.json", RELAY_ALLOW_LOOPBACK: "true" };

describe("relay call", () => {
  it.each(["connect", "grpc", "grpc-web", "rest"])(
    "prints the answer's own bytes over %s, status and headers beside them",
    async (protocol) => {
      const { call } = await startRelay();
      const result = await call("/bigint", ["--protocol", protocol]);
      expect(result).toMatchObject({ exitCode: 0, stdout: '{"id":9007199254740993,"v":1.0,"b":1,"a":2}' });
      expect(result.stderr).toMatch(/^HTTP 200 OK\n(?:.+: .+\n)*Content-Type: application\/json\n(?:.+: .+\n)*\n$/);
      const row = JSON.parse((await call("/me", ["--protocol", protocol, "--json"])).stdout);
      expect(row).toMatchObject({ pincStatus: "success", statusCode: 200, data: { login: "ada" } });
    },
  );

  it("sends method, payload and headers, the payload of the JSON route byte for byte", async () => {
    const { call } = await startRelay();
    const payload = '{"id":9007199254740993, "v":1.0}';
    const sent = ["-d", payload, "-H", "X-One: 1", "-H", "x-two:two: 2"];
    const { stdout } = await call("/echo/a?b=c", ["-X", "patch", ...sent, "--protocol", "rest"]);
    const echo = JSON.parse(stdout);
    expect(echo).toMatchObject({ method: "PATCH", target: "/echo/a?b=c", body: payload });
    expect(echo.headers).toEqual(
      expect.arrayContaining([
        ["X-One", "1"],
        ["x-two", "two: 2"],
      ]),
    );
    const post = JSON.parse((await call("/echo/", ["-d", '{"text":"grüße"}'])).stdout);
    expect(post).toMatchObject({ method: "POST", body: '{"text":"grüße"}' });
  });

  it("reads a payload from a file or standard input", async () => {
    const { folder, call } = await startRelay();
    writeFileSync(join(folder.path, "payload.json"), '{"from":"file"}');
    expect(JSON.parse((await call("/echo/", ["-d", "@payload.json"])).stdout).body).toBe('{"from":"file"}');
    const piped = await call("/echo/", ["-d", "@-"], { input: '{"from":"stdin"}' });
    expect(JSON.parse(piped.stdout).body).toBe('{"from":"stdin"}');
    expect(await call("/echo/", ["-d", "@missing.json"])).toMatchObject({ exitCode: 1, stdout: "" });
  });

  it("refuses a number that a typed message would round", async () => {
    const { call } = await startRelay();
    const result = await call("/echo/", ["-d", '{"id":9007199254740993}']);
    expect(result).toMatchObject({ exitCode: 2, stdout: "" });
    expect(result.stderr).toMatch(/--protocol rest/);
    expect(sandbox.requests).toEqual([]);
  });

  it("prints binary answers as they are, and headers in front with -i", async () => {
    const { call } = await startRelay();
    const { stdout } = await call("/text?charset=utf-8", ["-i"]);
    expect(stdout).toMatch(/^HTTP 200 OK\n[\s\S]*\n\n./);
    expect((await call("/bytes?size=5")).stdout).toHaveLength(5);
    expect(await call("/status/204")).toMatchObject({
      exitCode: 0,
      stdout: "",
      stderr: expect.stringMatching(/^HTTP 204 No Content/),
    });
  });

  it("exits with 1 for the provider's own error, and prints what the provider said", async () => {
    const { call } = await startRelay();
    const result = await call("/status/404");
    expect(result.exitCode).toBe(1);
    expect(result.stderr).toMatch(/^HTTP 404 Not Found\n[\s\S]*\nAPI_ERROR: .*404.*\n$/);
  });

  it.each(["connect", "grpc", "grpc-web", "rest"])("exits with 1 for an error row over %s", async (protocol) => {
    const { call } = await startRelay();
    const result = await call("/me", ["--user", "bob", "--protocol", protocol]);
    expect(result).toMatchObject({ exitCode: 1, stdout: "" });
    expect(result.stderr).toMatch(/^INVALID_OAUTHID: .*\n$/);
    const json = await call("/me", ["--user", "bob", "--protocol", protocol, "--json"]);
    expect(json.exitCode).toBe(1);
    expect(JSON.parse(json.stdout)).toMatchObject({
      pincStatus: "error",
      statusCode: 401,
      errorType: "INVALID_OAUTHID",
    });
  });

  it("sends a user's signature over every protocol, and explains with it", async () => {
    const { call, privateKey } = await startRelay(["--caller-auth", "signed-user"]);
    const signed = ["--user-signature", createHmac("sha256", privateKey).update("ada").digest("hex")];
    for (const protocol of ["connect", "grpc", "grpc-web", "rest"]) {
      const { exitCode } = await call("/me", [...signed, "--protocol", protocol]);
      expect([protocol, exitCode]).toEqual([protocol, 0]);
    }
    expect((await call("/me")).stderr).toMatch(/^CALLER_NOT_ALLOWED: /);
    expect((await call("/me", ["--user", "bob", ...signed])).stderr).toMatch(/^CALLER_NOT_ALLOWED: /);
    expect(await call("/me", [...signed, "--explain"], { env: EXPLAIN_ENV })).toMatchObject({ exitCode: 0 });
  });

  it.each(["connect", "grpc", "grpc-web", "rest"])(
    "sends the private key over %s, from a file or the environment",
    async (protocol) => {
      const { folder, call, privateKey } = await startRelay(["--caller-auth", "private-key"]);
      writeFileSync(join(folder.path, "app.key"), `${privateKey}\n`);
      const refused = await call("/me", ["--protocol", protocol]);
      expect(refused).toMatchObject({ exitCode: 1, stdout: "" });
      expect(refused.stderr).toMatch(/^CALLER_NOT_ALLOWED: /);
      const byFile = await call("/me", ["--protocol", protocol, "--private-key-file", "app.key"]);
      expect(byFile.exitCode).toBe(0);
      const byEnvironment = await call("/me", ["--protocol", protocol], { env: { RELAY_PRIVATE_KEY: privateKey } });
      expect(byEnvironment.exitCode).toBe(0);
      expect(byFile.stderr + byEnvironment.stderr).not.toContain(privateKey);
    },
  );

  it("goes to RELAY_LISTEN by default", async () => {
    const { folder, url, publicKey } = await startRelay();
    const args = ["call", "sandbox", `${sandbox.origin}/me`, "--app", publicKey, "--user", "ada"];
    const result = await folder.run(args, { env: { RELAY_LISTEN: url.replace("http://", "") } });
    expect(result.exitCode).toBe(0);
  });

  it.each(["connect", "grpc", "grpc-web", "rest"])(
    "says what to do when no relay answers, over %s",
    async (protocol) => {
      const { origin } = sandbox;
      await sandbox.close();
      const args = ["call", "sandbox", "https://a.example/", "--app", "some-key", "--user", "ada", "--relay", origin];
      const result = await createFolder().run([...args, "--protocol", protocol]);
      expect(result).toMatchObject({ exitCode: 1, stdout: "" });
      expect(result.stderr).toBe(
        `No relay answers at ${origin} (ECONNREFUSED). Start it with 'relay serve', or name another one with --relay.\n`,
      );
    },
  );

  it.each(["connect", "grpc", "grpc-web", "rest"])("says so when something else answers, over %s", async (protocol) => {
    const args = [
      "call",
      "sandbox",
      "https://a.example/",
      "--app",
      "some-key",
      "--user",
      "ada",
      "--relay",
      sandbox.origin,
    ];
    const result = await createFolder().run([...args, "--protocol", protocol]);
    expect(result).toMatchObject({ exitCode: 1, stdout: "" });
    expect(result.stderr).not.toMatch(/report this/);
  });
});

describe("relay call --explain", () => {
  it("says what would be sent without a relay and without asking the provider", async () => {
    const { call, child } = await startRelay();
    child.kill("SIGKILL");
    const env = EXPLAIN_ENV;
    const told = await call("/echo?a=1", ["--explain", "-d", '{"id":9007199254740993}'], { env });
    expect(told).toMatchObject({ exitCode: 0, stderr: "" });
    expect(told.stdout).toContain(`url          allowed by ${sandbox.origin}\n`);
    expect(told.stdout).toMatch(/\nconnection {3}ACTIVE, token expires 20\d\d-.*\nrenewal {6}none/);
    expect(told.stdout).toContain(`\n\nPOST ${sandbox.origin}/echo?a=1\ncontent-type: application/json\n`);
    expect(told.stdout).toMatch(/\nauthorization: Bearer \*\*\*\n\(23 bytes of body\)\n$/);
    const { stdout } = await call("/me", ["--explain", "--json"], { env });
    expect(JSON.parse(stdout)).toMatchObject({
      application: { displayName: "Shop" },
      egress: { allowed: true, rule: sandbox.origin },
      request: { method: "GET", url: `${sandbox.origin}/me` },
    });
    expect(stdout + told.stdout).not.toMatch(/sandbox_[ar]t_/);
    expect(sandbox.requests).toEqual([]);
  });

  it("exits with 1 for what would refuse it, and says what to do", async () => {
    const { call } = await startRelay(["--caller-auth", "private-key"]);
    const explain = (path: string, options: readonly string[], key?: string) =>
      call(path, ["--explain", ...options], { env: { ...EXPLAIN_ENV, ...(key && { RELAY_PRIVATE_KEY: key }) } });
    const unproven = await explain("/me", []);
    expect(unproven).toMatchObject({
      exitCode: 1,
      stdout: expect.stringMatching(/caller {7}refused by proof-missing\n$/),
    });
    expect(unproven.stderr).toMatch(/^CALLER_NOT_ALLOWED: .*\n'relay app update PUBLIC_KEY --caller-auth PROOF'.*\n$/);
    const wrong = await explain("/me", ["--json"], "relay_sk_wrong");
    expect(JSON.parse(wrong.stdout)).toMatchObject({ refusal: { errorType: "CALLER_NOT_ALLOWED", statusCode: 403 } });
  });

  it.each([
    [["--user", "bob"], "INVALID_OAUTHID", "relay connection link --app PUBLIC_KEY --user USER --provider sandbox"],
    [["-X", "TRACE"], "CALL_FORMAT_ERROR", "method is not supported"],
    [["--app", "nobody-at-all"], "INVALID_PUBLIC_KEY", "relay app list"],
  ])("explains %j as the call ends", async (options, errorType, advice) => {
    const { call } = await startRelay();
    const explained = await call("/me", ["--explain", ...options], { env: EXPLAIN_ENV });
    const called = await call("/me", options);
    expect([explained.exitCode, called.exitCode]).toEqual([1, 1]);
    expect(explained.stderr).toContain(called.stderr.trim());
    expect(explained.stderr).toMatch(new RegExp(`^${errorType}: `));
    expect(explained.stderr).toContain(advice);
  });
});

describe("a running relay", () => {
  it("sees at once what the commands change, and follows a rotated key without a failed call", async () => {
    const { folder, call, publicKey } = await startRelay();
    expect((await call("/me")).exitCode).toBe(0);
    expect(await folder.json(["key", "rotate"])).toMatchObject({ left: 0 });
    expect((await call("/me")).exitCode).toBe(0);
    await folder.json(["app", "update", publicKey, "--disable"]);
    expect((await call("/me")).stderr).toMatch(/^INVALID_PUBLIC_KEY: /);
  });
});
