import { spawn } from "node:child_process";
import { once } from "node:events";
import { createInterface } from "node:readline";
import { fileURLToPath } from "node:url";
import type { Service } from "../../src/app/server.js";

const RELAY = fileURLToPath(new URL("../../dist/src/cli/relay.js", import.meta.url));

/** Starts `relay serve` with these settings, as `RELAY_WORKERS` workers under their supervisor, on the built files. */
export async function startWorkers(
  env: Readonly<Record<string, string>>,
  onLogLine: (line: string) => void,
): Promise<Service> {
  const child = spawn(process.execPath, [RELAY, "serve"], {
    env: { PATH: process.env["PATH"] ?? "", ...env },
    stdio: ["ignore", "pipe", "inherit"],
  });
  const exited = once(child, "exit");
  // Workers end by themselves when their supervisor is gone.
  const kill = () => void child.kill("SIGKILL");
  process.once("exit", kill);
  const lines = createInterface(child.stdout).on("line", onLogLine);
  const { url, adminUrl } = await new Promise<Pick<Service, "url" | "adminUrl">>((resolve, reject) => {
    void exited.then(([code]) => reject(new Error(`relay serve ended with ${code}`)));
    lines.on("line", (line) => {
      const { msg, ...urls } = JSON.parse(line);
      if (msg === "listening") resolve(urls);
    });
  });
  return {
    url,
    adminUrl,
    async close() {
      child.kill("SIGTERM");
      const [code] = await exited;
      process.off("exit", kill);
      if (code !== 0) throw new Error(`relay serve ended with ${code}`);
    },
  };
}
