import { execFile } from "node:child_process";
import { once } from "node:events";
import { mkdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { join, resolve } from "node:path";
import { json } from "node:stream/consumers";
import { promisify } from "node:util";
import { request } from "undici";
import { expect, it, onTestFinished } from "vitest";
import { parseExposition, totalOf } from "../support/exposition.js";
import { createFolder, lineFrom, startServe } from "./run-relay.js";

const run = promisify(execFile);

/** The text of a block that a document marks as run by a test. */
function blockOf(file: string, where: string, language: string): string {
  const pattern = new RegExp(`<!-- run with ${where} -->\n\`\`\`${language}\n([\\s\\S]+?)\`\`\``);
  return pattern.exec(readFileSync(file, "utf8"))?.[1] ?? "";
}

it("the documented command reads the metrics with the token that the service has made", async () => {
  const folder = createFolder();
  mkdirSync(join(folder.path, "data"));
  const env = { RELAY_ADMIN_LISTEN: "127.0.0.1:0", RELAY_ADMIN_TOKEN_FILE: "data/admin.tokens" };
  const { adminUrl } = await startServe(folder, env);
  const script = blockOf("docs/monitoring.md", "the metrics", "sh").replace("http://127.0.0.1:8081", adminUrl);
  const { stdout } = await run("bash", ["-euo", "pipefail", "-c", script], { cwd: folder.path });
  expect(totalOf(parseExposition(stdout), "relay_processes")).toBe(1);
});

/** Receives spans as an OpenTelemetry collector does (OTLP over HTTP, JSON). */
async function startCollector() {
  const received: unknown[] = [];
  const server = createServer(async (incoming, response) => {
    received.push([incoming.url, await json(incoming)]);
    response.writeHead(200, { "content-type": "application/json" }).end("{}");
  });
  server.listen(0, "127.0.0.1");
  await once(server, "listening");
  onTestFinished(() => {
    server.closeAllConnections();
    server.close();
  });
  return { received, url: `http://127.0.0.1:${(server.address() as AddressInfo).port}` };
}

it("the documented SDK sends the spans of a call to a collector, the last ones when the service ends", async () => {
  const collector = await startCollector();
  // Where the packages are found, as in a folder in which they were installed.
  const file = resolve("dist/tracing-example.mjs");
  writeFileSync(file, blockOf("docs/monitoring.md", "a collector", "js"));
  onTestFinished(() => rmSync(file));
  const command = blockOf("docs/monitoring.md", "a collector", "sh");
  const [, traces = "", options = ""] =
    /^RELAY_TRACES=(\w+) NODE_OPTIONS='([^']+)' npx relay serve$/m.exec(command) ?? [];
  const env = {
    RELAY_TRACES: traces,
    NODE_OPTIONS: options.replace("./tracing.mjs", file),
    OTEL_EXPORTER_OTLP_ENDPOINT: collector.url,
  };
  const { url, child } = await startServe(createFolder(), env);
  const traceId = "0af7651916cd43dd8448eb211c80319c";
  const headers = { traceparent: `00-${traceId}-b7ad6b7169203331-01` };
  const answer = await request(`${url}/oauth/method/github/call`, { method: "POST", headers, body: "{}" });
  await answer.body.dump();
  child.kill("SIGTERM");
  expect(await once(child, "close")).toEqual([0, null]);
  const told = JSON.stringify(collector.received);
  expect(told).toContain("/v1/traces");
  for (const part of [
    traceId,
    "relay.v1.RelayService/Call",
    "CALL_FORMAT_ERROR",
    '"service.name","value":{"stringValue":"relay"}',
  ]) {
    expect(told).toContain(part);
  }
});

it("says so when spans are wanted and no SDK is there to take them", async () => {
  const child = createFolder().start(["serve"], { RELAY_LISTEN: "127.0.0.1:0", RELAY_TRACES: "on" });
  expect(await lineFrom(child, (line) => /no OpenTelemetry SDK is loaded/.exec(line)?.[0])).toBeDefined();
});
