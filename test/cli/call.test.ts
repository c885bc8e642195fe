import { createHmac } from "node:crypto";
import { writeFileSync } from "node:fs";
import { createServer, type IncomingMessage, type ServerResponse } from "node:http";
import { createServer as createHttp2Server } from "node:http2";
import type { AddressInfo } from "node:net";
import { join } from "node:path";
import { beforeAll, describe, expect, it } from "vitest";
import { createAuthority } from "../support/certificates.js";
import { thin } from "../support/long.js";
import { type Sandbox, startSandbox } from "../support/sandbox.js";
import { type CleanUp, type CliFolder, createFolder, type OnEnd, prepareOnce, startServiceHere } from "./run-relay.js";

/** Of the relay that makes the calls. */
const ENV = { RELAY_PROVIDERS: "sandbox.json", RELAY_ALLOW_LOOPBACK: "true" };

/** An application for each proof of its callers, with one connected user. */
const prepared = prepareOnce(async (folder) => {
  writeFileSync(join(folder.path, "sandbox.json"), JSON.stringify(sandbox.providerDefinition()));
  const open = await createConnected(folder, "public-key");
  const keyed = await createConnected(folder, "private-key");
  const signed = await createConnected(folder, "signed-user");
  return { open, keyed, signed };
});

async function createConnected(folder: CliFolder, proof: string): Promise<{ publicKey: string; privateKey: string }> {
  const keys = await folder.json(["app", "create", "Shop", "--caller-auth", proof]);
  const put = ["connection", "put", "--app", keys.publicKey, "--user", "ada", "--provider", "sandbox"];
  await folder.json(put, { input: JSON.stringify(sandbox.issueToken()), env: ENV });
  return keys;
}

/** A running relay; `call` runs `relay call` against it, for the application that wants no proof unless told. */
async function startRelay(onEnd?: OnEnd) {
  const { folder, ...applications } = await prepared(onEnd);
  const { url } = await startServiceHere(folder, ENV, onEnd);
  const call = (path: string, options: readonly string[] = [], run: Parameters<CliFolder["run"]>[1] = {}) =>
    folder.run(["call", ...argumentsOf(path, applications.open), "--relay", url, ...options], run);
  return { folder, url, call, ...applications };
}

const argumentsOf = (path: string, { publicKey }: { readonly publicKey: string }) => [
  ...["sandbox", `${sandbox.origin}${path}`],
  ...["--app", publicKey, "--user", "ada"],
];

let sandbox: Sandbox;
let relay: Awaited<ReturnType<typeof startRelay>>;
beforeAll(async () => {
  sandbox = await startSandbox();
  const cleanUps: CleanUp[] = [];
  relay = await startRelay((cleanUp) => cleanUps.unshift(cleanUp));
  return async () => {
    for (const cleanUp of cleanUps) await cleanUp();
    await sandbox.close();
  };
});

describe("relay call to a relay with a certificate", () => {
  it.each(thin(["connect", "grpc", "rest"]))(
    "says over %s what is wrong with it, and takes it when told to",
    async (protocol) => {
      const folder = createFolder();
      const authority = createAuthority("private");
      const write = (name: string, text: string) => {
        writeFileSync(join(folder.path, name), text);
        return name;
      };
      const { cert, key } = authority.issue({ names: ["localhost"] });
      const { url } = await startServiceHere(folder, {
        RELAY_TLS_CERT: write("cert.pem", cert),
        RELAY_TLS_KEY: write("key.pem", key),
      });
      const named = url.replace("127.0.0.1", "localhost");
      const call = (relayUrl: string, env: Record<string, string> = {}) =>
        folder.run(
          [
            "call",
            "github",
            "https://api.github.com/",
            "--app",
            "some-key",
            "--user",
            "ada",
            "--relay",
            relayUrl,
            "--protocol",
            protocol,
          ],
          { env },
        );
      const untrusted = await call(named);
      expect([untrusted.exitCode, untrusted.stderr]).toEqual([
        1,
        expect.stringMatching(/is not trusted here \(\w+\).*NODE_EXTRA_CA_CERTS/),
      ]);
      const trusted = { NODE_EXTRA_CA_CERTS: join(folder.path, write("ca.pem", authority.ca)) };
      expect((await call(named, trusted)).stderr).toContain("INVALID_PUBLIC_KEY");
      expect((await call(url, trusted)).stderr).toContain("is for another name (ERR_TLS_CERT_ALTNAME_INVALID)");
    },
  );
});

describe("relay call", () => {
  it.each(thin(["connect", "grpc", "grpc-web", "rest"], 3))(
    "prints the answer's own bytes over %s, status and headers beside them",
    async (protocol) => {
      const { folder, url, call, open } = relay;
      const args = ["call", ...argumentsOf("/bigint", open), "--relay", url, "--protocol", protocol];
      const result = await folder.runProcess(args);
      expect(result).toMatchObject({ exitCode: 0, stdout: '{"id":9007199254740993,"v":1.0,"b":1,"a":2}' });
      expect(result.stderr).toMatch(/^HTTP 200 OK\n(?:.+: .+\n)*Content-Type: application\/json\n(?:.+: .+\n)*\n$/);
      const row = JSON.parse((await call("/me", ["--protocol", protocol, "--json"])).stdout);
      expect(row).toMatchObject({ pincStatus: "success", statusCode: 200, data: { login: "ada" } });
    },
  );

  it("sends method, payload and headers, the payload of the JSON route byte for byte", async () => {
    const { call } = relay;
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
    const { folder, call } = relay;
    writeFileSync(join(folder.path, "payload.json"), '{"from":"file"}');
    expect(JSON.parse((await call("/echo/", ["-d", "@payload.json"])).stdout).body).toBe('{"from":"file"}');
    const piped = await call("/echo/", ["-d", "@-"], { input: '{"from":"stdin"}' });
    expect(JSON.parse(piped.stdout).body).toBe('{"from":"stdin"}');
    expect(await call("/echo/", ["-d", "@missing.json"])).toMatchObject({ exitCode: 1, stdout: "" });
  });

  it("refuses a number that a typed message would round", async () => {
    const { call } = relay;
    const asked = sandbox.requests.length;
    const result = await call("/echo/", ["-d", '{"id":9007199254740993}']);
    expect(result).toMatchObject({ exitCode: 2, stdout: "" });
    expect(result.stderr).toMatch(/--protocol rest/);
    expect(sandbox.requests).toHaveLength(asked);
  });

  it("prints binary answers as they are, and headers in front with -i", async () => {
    const { call } = relay;
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
    const { call } = relay;
    const result = await call("/status/404");
    expect(result.exitCode).toBe(1);
    expect(result.stderr).toMatch(/^HTTP 404 Not Found\n[\s\S]*\nAPI_ERROR: .*404.*\n$/);
  });

  it.each(["connect", "grpc", "grpc-web", "rest"])("exits with 1 for an error row over %s", async (protocol) => {
    const { call } = relay;
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
    const { call, signed } = relay;
    const app = ["--app", signed.publicKey];
    const proven = [...app, "--user-signature", createHmac("sha256", signed.privateKey).update("ada").digest("hex")];
    for (const protocol of ["connect", "grpc", "grpc-web", "rest"]) {
      const { exitCode } = await call("/me", [...proven, "--protocol", protocol]);
      expect([protocol, exitCode]).toEqual([protocol, 0]);
    }
    expect((await call("/me", app)).stderr).toMatch(/^CALLER_NOT_ALLOWED: /);
    expect((await call("/me", [...proven, "--user", "bob"])).stderr).toMatch(/^CALLER_NOT_ALLOWED: /);
    expect(await call("/me", [...proven, "--explain"], { env: ENV })).toMatchObject({ exitCode: 0 });
  });

  it.each(["connect", "grpc", "grpc-web", "rest"])(
    "sends the private key over %s, from a file or the environment",
    async (protocol) => {
      const { folder, call, keyed } = relay;
      const { publicKey, privateKey } = keyed;
      const options = ["--app", publicKey, "--protocol", protocol];
      writeFileSync(join(folder.path, "app.key"), `${privateKey}\n`);
      const refused = await call("/me", options);
      expect(refused).toMatchObject({ exitCode: 1, stdout: "" });
      expect(refused.stderr).toMatch(/^CALLER_NOT_ALLOWED: /);
      const byFile = await call("/me", [...options, "--private-key-file", "app.key"]);
      expect(byFile.exitCode).toBe(0);
      const byEnvironment = await call("/me", options, { env: { RELAY_PRIVATE_KEY: privateKey } });
      expect(byEnvironment.exitCode).toBe(0);
      expect(byFile.stderr + byEnvironment.stderr).not.toContain(privateKey);
    },
  );

  it("goes to RELAY_LISTEN by default", async () => {
    const { folder, url, open } = relay;
    const env = { RELAY_LISTEN: url.replace("http://", "") };
    const result = await folder.run(["call", ...argumentsOf("/me", open)], { env });
    expect(result.exitCode).toBe(0);
  });

  it.each(["connect", "grpc", "grpc-web", "rest"])(
    "says what to do when no relay answers, over %s",
    async (protocol) => {
      const gone = await startSandbox();
      await gone.close();
      const { origin } = gone;
      const args = ["call", "sandbox", "https://a.example/", "--app", "some-key", "--user", "ada", "--relay", origin];
      const result = await createFolder().run([...args, "--protocol", protocol]);
      expect(result).toMatchObject({ exitCode: 1, stdout: "" });
      expect(result.stderr).toBe(
        `No relay answers at ${origin} (ECONNREFUSED). Start it with 'relay serve', or give another address with --relay.\n`,
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
    // nghttp2 gives up before there is an answer to judge.
    const text =
      protocol === "grpc" ? /^No relay answers at / : /^The answer is not a relay's envelope\. Check the address/;
    expect(result.stderr).toMatch(text);
  });

  it.each(["connect", "grpc", "grpc-web", "rest"])(
    "says so for a port without the method, over %s",
    async (protocol) => {
      const handler = (_request: IncomingMessage, response: ServerResponse) => void response.writeHead(404).end("no\n");
      const server = protocol === "grpc" ? createHttp2Server(handler as never) : createServer(handler);
      await new Promise<void>((done) => void server.listen(0, "127.0.0.1", done));
      const address = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
      const args = ["call", "sandbox", "https://a.example/", "--app", "some-key", "--user", "ada", "--relay", address];
      const result = await createFolder().run([...args, "--protocol", protocol]);
      server.close();
      expect(result).toMatchObject({ exitCode: 1, stdout: "" });
      expect(result.stderr).toBe(
        "The answer is not a relay's envelope. Check the address in --relay or RELAY_LISTEN.\n",
      );
    },
  );

  it.each(["connect", "grpc", "grpc-web"])("shows why the relay refuses a message, over %s", async (protocol) => {
    const { url, open } = relay;
    const data = JSON.stringify({ text: "x".repeat(11 * 1024 * 1024) });
    const { folder } = relay;
    writeFileSync(join(folder.path, "large.json"), data);
    const result = await folder.run([
      ...["call", ...argumentsOf("/me", open), "--relay", url, "-d", "@large.json", "--protocol", protocol],
    ]);
    expect(result.stderr).toMatch(/^The relay refused the message \(ResourceExhausted\): message size /);
  });
});

describe("relay call --explain", () => {
  it("says what would be sent without a relay and without asking the provider", async () => {
    const { folder, open } = await prepared();
    const asked = sandbox.requests.length;
    const explain = (path: string, ...options: string[]) =>
      folder.run(["call", ...argumentsOf(path, open), "--explain", ...options], { env: ENV });
    const told = await explain("/echo?a=1", "-d", '{"id":9007199254740993}');
    expect(told).toMatchObject({ exitCode: 0, stderr: "" });
    expect(told.stdout).toContain(`url          allowed by ${sandbox.origin}\n`);
    expect(told.stdout).toMatch(/\nconnection {3}ACTIVE, token expires 20\d\d-.*\nrefresh {6}none/);
    expect(told.stdout).toContain(`\n\nPOST ${sandbox.origin}/echo?a=1\ncontent-type: application/json\n`);
    expect(told.stdout).toMatch(/\nauthorization: Bearer \*\*\*\n\(23 bytes of body\)\n$/);
    const { stdout } = await explain("/me", "--json");
    expect(JSON.parse(stdout)).toMatchObject({
      application: { displayName: "Shop" },
      egress: { allowed: true, rule: sandbox.origin },
      request: { method: "GET", url: `${sandbox.origin}/me` },
    });
    expect(stdout + told.stdout).not.toMatch(/sandbox_[ar]t_/);
    expect(sandbox.requests).toHaveLength(asked);
  });

  it("explains a request that is passed through, and leaves sending one to others", async () => {
    const { folder, open } = await prepared();
    const run = (...options: string[]) =>
      folder.run(["call", ...argumentsOf("/me?a='b'", open), "-X", "X-PROBE", "--via", ...options], { env: ENV });
    expect((await run("--explain")).stdout).toContain(`\n\nX-PROBE ${sandbox.origin}/me?a='b'\n`);
    expect(await run()).toMatchObject({ exitCode: 2, stdout: "", stderr: expect.stringContaining("--explain") });
  });

  it("exits with 1 for what would refuse it, and says what to do", async () => {
    const { call, keyed } = relay;
    const explain = (options: readonly string[], env = {}) =>
      call("/me", ["--app", keyed.publicKey, "--explain", ...options], { env: { ...ENV, ...env } });
    const unproven = await explain([]);
    expect(unproven).toMatchObject({
      exitCode: 1,
      stdout: expect.stringMatching(/caller {7}refused by proof-missing\n$/),
    });
    expect(unproven.stderr).toMatch(
      /^CALLER_NOT_ALLOWED: .*\nSend it: .* RELAY_PRIVATE_KEY\. .*--caller-auth PROOF'.*\n$/,
    );
    const wrong = await explain(["--json"], { RELAY_PRIVATE_KEY: "relay_sk_wrong" });
    expect(JSON.parse(wrong.stdout)).toMatchObject({ refusal: { errorType: "CALLER_NOT_ALLOWED", statusCode: 403 } });
  });

  it.each([
    [["--user", "bob"], "INVALID_OAUTHID", "relay connection link --app PUBLIC_KEY --user USER --provider sandbox"],
    [["-X", "TRACE"], "CALL_FORMAT_ERROR", "method is not supported"],
    [["--app", "nobody-at-all"], "INVALID_PUBLIC_KEY", "relay app list"],
  ])("explains %j as the call ends", async (options, errorType, advice) => {
    const { call } = relay;
    const explained = await call("/me", ["--explain", ...options], { env: ENV });
    const called = await call("/me", options);
    expect([explained.exitCode, called.exitCode]).toEqual([1, 1]);
    expect(explained.stderr).toContain(called.stderr.trim());
    expect(explained.stderr).toMatch(new RegExp(`^${errorType}: `));
    expect(explained.stderr).toContain(advice);
  });
});

it("relay call says of an unknown provider whose definitions a command reads", async () => {
  const { folder, open } = relay;
  const args = ["call", "nobody", "https://api.example/", "--app", open.publicKey, "--user", "ada", "--explain"];
  const { exitCode, stderr } = await folder.run(args, { env: ENV });
  expect(exitCode).toBe(1);
  expect(stderr).toMatch(
    /^INVALID_PROVIDER: There is no provider with this name\. .*\n'relay provider list' .*\. RELAY_PROVIDERS adds more; the service and your terminal may have different values of it\.\n$/,
  );
});

describe("a running relay", () => {
  it("sees at once what the commands change, and follows a rotated key without a failed call", async () => {
    const { folder, call, open } = await startRelay();
    expect((await call("/me")).exitCode).toBe(0);
    expect(await folder.json(["key", "rotate"])).toMatchObject({ left: 0 });
    expect((await call("/me")).exitCode).toBe(0);
    await folder.json(["app", "update", open.publicKey, "--disable"]);
    expect((await call("/me")).stderr).toMatch(/^INVALID_PUBLIC_KEY: /);
  });
});
