import type { ChildProcess } from "node:child_process";
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { createAuthority } from "../support/certificates.js";
import { scriptOf } from "./build.js";
import { nextMessage, startPinned, stopPinned } from "./pinned-process.js";
import type { Setup } from "./points.js";

/** The provider, reached in one way. */
interface Provider {
  readonly origin: string;
  readonly port: number;
  readonly child: ChildProcess;
}

/** The provider in each way there is to it, and what TLS needs. */
export interface Providers extends Readonly<Record<Setup["provider"], Provider>> {
  /** The certificate of every server, and its key: PEM, and files of them. */
  readonly tls: { readonly cert: string; readonly key: string };
  readonly tlsFiles: { readonly cert: string; readonly key: string };
  /** The environment of whoever trusts it. */
  readonly trust: Readonly<Record<string, string>>;
  close(): Promise<void>;
}

/** Starts the provider on free ports of 127.0.0.1. */
export async function startProviders(): Promise<Providers> {
  const folder = mkdtempSync(join(tmpdir(), "relay-bench-tls-"));
  const authority = createAuthority("bench");
  const tls = authority.issue({ names: ["localhost"] });
  const http = await startProvider("provider", "http", {});
  const https = await startProvider("provider", "https", { TLS: JSON.stringify(tls) });
  const far = await startProvider("far", "https", { PROVIDER_PORT: String(https.port) });
  return {
    http,
    https,
    far,
    tls,
    tlsFiles: { cert: fileIn(folder, "cert.pem", tls.cert), key: fileIn(folder, "key.pem", tls.key) },
    trust: { NODE_EXTRA_CA_CERTS: fileIn(folder, "ca.pem", authority.ca) },
    async close() {
      for (const { child } of [far, https, http]) await stopPinned(child);
      rmSync(folder, { recursive: true, force: true });
    },
  };
}

async function startProvider(
  script: string,
  scheme: "http" | "https",
  env: Readonly<Record<string, string>>,
): Promise<Provider> {
  const child = startPinned({ core: "other", args: [scriptOf(script)], env });
  const { port } = await nextMessage<{ port: number }>(child);
  return { origin: `${scheme}://${scheme === "http" ? "127.0.0.1" : "localhost"}:${port}`, port, child };
}

function fileIn(folder: string, name: string, text: string): string {
  const file = join(folder, name);
  writeFileSync(file, text);
  return file;
}
