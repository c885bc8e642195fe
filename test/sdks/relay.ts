import { type ChildProcess, spawn, spawnSync } from "node:child_process";
import { once } from "node:events";
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { createInterface } from "node:readline";
import { fileURLToPath } from "node:url";
import { type Account, createRelayClient } from "provider-call-relay-client";
import type { Authority } from "../support/certificates.js";

/** The name at which SDKs reach the relay. */
export const RELAY_HOST = "relay.example.com";
/** The name of its administration port. */
export const ADMIN_HOST = "admin.relay.example.com";

/** A relay in a process of its own, with one application. */
export interface RelayProcess {
  /** Ports on 127.0.0.1, by the names above. */
  readonly ports: ReadonlyMap<string, number>;
  /** Stores a user's token for a provider; the account, as a program has it from the client package. */
  connect(
    providerName: string,
    accessToken: string,
    originParameters?: Readonly<Record<string, string>>,
  ): Promise<Account>;
  close(): Promise<void>;
}

const RELAY = fileURLToPath(new URL("../../dist/src/cli/relay.js", import.meta.url));
const NETWORK = new URL("network.mjs", import.meta.url).href;

/** Starts the built relay with its own catalogue, as an operator would; its way out ends at the stand-in. */
export async function startRelay(authority: Authority, standInPort: number): Promise<RelayProcess> {
  const folder = mkdtempSync(join(tmpdir(), "relay-sdks-"));
  const file = (name: string, text: string) => {
    writeFileSync(join(folder, name), text, { mode: 0o600 });
    return join(folder, name);
  };
  const { cert, key } = authority.issue({ names: [RELAY_HOST, ADMIN_HOST] });
  const env = {
    PATH: process.env["PATH"] ?? "",
    NODE_EXTRA_CA_CERTS: file("ca.pem", authority.ca),
    RELAY_LISTEN: "127.0.0.1:0",
    RELAY_ADMIN_LISTEN: "127.0.0.1:0",
    RELAY_PUBLIC_URL: `https://${RELAY_HOST}`,
    RELAY_TLS_CERT: file("relay.crt", cert),
    RELAY_TLS_KEY: file("relay-tls.key", key),
    RELAY_LOG_LEVEL: "info",
  };
  const created = spawnSync(
    process.execPath,
    [RELAY, "app", "create", "SDKs", "--caller-auth", "private-key", "--json"],
    {
      cwd: folder,
      env,
      encoding: "utf8",
    },
  );
  if (created.status !== 0) throw new Error(created.stderr);
  const { publicKey, privateKey } = JSON.parse(created.stdout) as { publicKey: string; privateKey: string };
  const child = spawn(process.execPath, ["--import", NETWORK, RELAY, "serve"], {
    cwd: folder,
    env: { ...env, STAND_IN_PORT: String(standInPort) },
    stdio: ["ignore", "pipe", "inherit"],
  });
  const ports = await portsOf(child);
  const adminToken = readFileSync(join(folder, "data/admin.tokens"), "utf8").trim().split(" ").at(-1);
  const relay = createRelayClient({ url: `https://${RELAY_HOST}`, publicKey, privateKey });
  return {
    ports,
    async connect(providerName, accessToken, originParameters = {}) {
      const tokenResponse = JSON.stringify({ access_token: accessToken, token_type: "bearer" });
      const put = await fetch(`https://${ADMIN_HOST}/relay.admin.v1.ConnectionService/PutConnection`, {
        method: "POST",
        headers: { authorization: `Bearer ${adminToken}`, "content-type": "application/json" },
        body: JSON.stringify({ publicKey, userId: "ada", providerName, originParameters, tokenResponse }),
      });
      if (!put.ok) throw new Error(`${providerName}: ${await put.text()}`);
      return relay.account("ada", providerName);
    },
    async close() {
      if (child.kill("SIGTERM")) await once(child, "close");
      rmSync(folder, { recursive: true, force: true });
    },
  };
}

/** Of the line that says where it listens; what else it logs is read and dropped. */
async function portsOf(child: ChildProcess): Promise<ReadonlyMap<string, number>> {
  const lines: string[] = [];
  if (child.stdout === null) throw new Error("the relay has no standard output");
  return new Promise((resolve, reject) => {
    createInterface({ input: child.stdout as NodeJS.ReadableStream }).on("line", (line) => {
      lines.push(line);
      const { msg, url, adminUrl } = JSON.parse(line);
      if (msg === "listening")
        resolve(
          new Map([
            [RELAY_HOST, Number(new URL(url).port)],
            [ADMIN_HOST, Number(new URL(adminUrl).port)],
          ]),
        );
    });
    child.on("exit", () => reject(new Error(`the relay did not start: ${lines.join("\n")}`)));
  });
}
