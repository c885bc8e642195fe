import { type ChildProcess, spawn } from "node:child_process";
import { once } from "node:events";
import { accessSync, constants, mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { delimiter, join } from "node:path";
import { createClient } from "@connectrpc/connect";
import { createConnectTransport, createGrpcTransport } from "@connectrpc/connect-node";
import { Agent, request } from "undici";
import { afterAll, beforeAll, describe, expect, it, type TestOptions, vi } from "vitest";
import { parse } from "yaml";
import { RelayService } from "../../gen/relay/v1/relay_pb.js";
import { createAuthority } from "../support/certificates.js";
import { freePort } from "../support/free-port.js";
import { type Harness, startHarness, type TestApplication } from "../support/harness.js";

/** A program, its configuration, and how it is started with another one. */
interface LoadBalancer {
  readonly name: string;
  readonly file: string;
  /** Where certificate and key stand in the configuration. */
  readonly files: Readonly<Record<string, "both" | "cert" | "key">>;
  readonly adapt?: (text: string) => string;
  readonly args: (file: string, folder: string) => readonly string[];
}

const TEMP_PATHS = ["client_body", "proxy", "fastcgi", "uwsgi", "scgi"]
  .map((each) => `${each}_temp_path tmp;`)
  .join(" ");

const LOAD_BALANCERS: readonly LoadBalancer[] = [
  {
    name: "haproxy",
    file: "haproxy.cfg",
    files: { "/etc/haproxy/relay.pem": "both" },
    // Each needs two descriptors, and a test has few.
    adapt: (text) => text.replace("maxconn 20000", "maxconn 200"),
    args: (file) => ["-f", file],
  },
  {
    name: "nginx",
    file: "nginx.conf",
    files: { "/etc/nginx/relay.pem": "cert", "/etc/nginx/relay.key": "key" },
    // Where Debian's keeps its files belongs to the system.
    adapt: (text) => text.replace("http {", `http { access_log off; ${TEMP_PATHS}`),
    args: (file, folder) => ["-p", folder, "-c", file, "-e", "stderr", "-g", "daemon off; pid nginx.pid;"],
  },
  {
    name: "envoy",
    file: "envoy.yaml",
    files: { "/etc/envoy/relay.pem": "cert", "/etc/envoy/relay.key": "key" },
    args: (file) => ["-c", file, "--disable-hot-restart"],
  },
];

function programOf(name: string): string | undefined {
  const folders = [...(process.env["PATH"] ?? "").split(delimiter), "/usr/sbin", "/usr/local/sbin"];
  return folders
    .map((folder) => join(folder, name))
    .find((path) => {
      try {
        accessSync(path, constants.X_OK);
        return true;
      } catch {
        return false;
      }
    });
}

function needs(name: string): TestOptions {
  return programOf(name) === undefined
    ? { skip: true, meta: { skippedBecause: `there is no ${name} in the PATH` } }
    : {};
}

/** The configuration as it stands, but for addresses and files. */
function adapted(
  { file, files, adapt = (text) => text }: LoadBalancer,
  port: number,
  relays: readonly string[],
  folder: string,
) {
  const { cert, key } = createAuthority("load balancer").issue({ names: ["localhost"] });
  let text = readFileSync(`docs/deploy/${file}`, "utf8");
  for (const [path, what] of Object.entries(files)) {
    const own = join(folder, path.split("/").at(-1) ?? "");
    writeFileSync(own, { both: cert + key, cert, key }[what], { mode: 0o600 });
    text = text.replaceAll(path, own);
  }
  for (const [at, url] of relays.entries()) {
    const { port: own } = new URL(url);
    text = text
      .replaceAll(`relay-${at + 1}.internal:8080`, `127.0.0.1:${own}`)
      .replaceAll(`address: relay-${at + 1}.internal, port_value: 8080`, `address: 127.0.0.1, port_value: ${own}`);
  }
  return adapt(
    text
      .replace("bind :443", `bind 127.0.0.1:${port}`)
      .replace("listen 443", `listen 127.0.0.1:${port}`)
      .replace("address: 0.0.0.0, port_value: 443", `address: 127.0.0.1, port_value: ${port}`),
  );
}

describe.each(LOAD_BALANCERS.map((each) => [each.name, each] as const))("docs/deploy: %s", (name, balancer) => {
  describe("with two relays behind it", needs(name), () => {
    let folder: string;
    let harness: Harness;
    let application: TestApplication;
    let program: ChildProcess;
    let url: string;
    const dispatcher = new Agent({ connect: { rejectUnauthorized: false } });

    beforeAll(async () => {
      folder = mkdtempSync(join(tmpdir(), "relay-balancer-"));
      mkdirSync(join(folder, "tmp"));
      harness = await startHarness({ env: { RELAY_TRUSTED_PROXIES: "127.0.0.1/32" } });
      application = await harness.createApplication();
      await harness.connect(application, "ada");
      const [port, peer] = [await freePort(), await harness.startPeer()];
      url = `https://localhost:${port}`;
      const file = join(folder, balancer.file);
      writeFileSync(file, adapted(balancer, port, [harness.url, peer], folder));
      program = spawn(programOf(name) ?? "", balancer.args(file, folder), { stdio: ["ignore", "ignore", "pipe"] });
      let told = "";
      program.stderr?.on("data", (chunk) => (told += chunk));
      const requireReady = async () => expect(await ready().catch(() => `${program.exitCode} ${told}`)).toBe(200);
      await vi.waitFor(requireReady, { timeout: 20_000, interval: 100 });
    });
    afterAll(async () => {
      const ended = program?.exitCode === null ? once(program, "exit") : undefined;
      program?.kill("SIGTERM");
      await ended;
      await dispatcher.close();
      await harness?.close();
      rmSync(folder, { recursive: true, force: true });
    });

    async function ready(): Promise<number> {
      const { statusCode, body } = await request(`${url}/readyz`, { dispatcher });
      await body.dump();
      return statusCode;
    }

    async function callRest(): Promise<unknown> {
      const query = new URLSearchParams({ user_id: "ada", public_key: application.publicKey });
      const body = JSON.stringify({ url: `${harness.sandbox.origin}/me`, method: "GET" });
      const target = `${url}/oauth/method/sandbox/call?${query}`;
      const answer = await request(target, { method: "POST", dispatcher, body });
      const { rows } = (await answer.body.json()) as { rows: Array<{ statusCode: number }> };
      return rows[0]?.statusCode;
    }

    it.each(["gRPC", "Connect"])("takes the JSON route and %s on one port", async (protocol) => {
      expect(await callRest()).toBe(200);
      const options = { baseUrl: url, httpVersion: "2", nodeOptions: { rejectUnauthorized: false } } as const;
      const transport = protocol === "gRPC" ? createGrpcTransport(options) : createConnectTransport(options);
      const { rows } = await createClient(RelayService, transport).call({
        ...{ providerName: "sandbox", userId: "ada", publicKey: application.publicKey },
        call: { url: `${harness.sandbox.origin}/me`, method: "GET" },
      });
      expect(rows[0]?.statusCode).toBe(200);
    });

    it("goes on with the other relay when one has ended", async () => {
      await harness.closeRelay();
      const attempt = () => callRest().catch((error: Error) => error.message);
      await expect.poll(attempt).toBe(200);
      for (let calls = 0; calls < 20; calls += 1) expect(await attempt()).toBe(200);
    });
  });
});

it("docs/deploy/envoy.yaml is YAML that names each cluster it uses", () => {
  const text = readFileSync("docs/deploy/envoy.yaml", "utf8");
  const { clusters } = parse(text).static_resources;
  const named = [...text.matchAll(/route: \{ cluster: (\w+),/g)].map(([, cluster]) => cluster);
  expect(clusters.map(({ name }: { name: string }) => name).sort()).toEqual([...new Set(named)].sort());
});
