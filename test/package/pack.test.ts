import { execFile } from "node:child_process";
import { existsSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { promisify } from "node:util";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { type Harness, startHarness, type TestApplication } from "../support/harness.js";

const ROOT = new URL("../../", import.meta.url).pathname;
const TSC = join(ROOT, "node_modules/.bin/tsc");
/** npm fetches the dependencies from the registry, or from its cache. */
const INSTALL_TIMEOUT_MS = 240_000;

/** A consumer in TypeScript. A line that must not compile shows that the types are there, and not `any`. */
const CONSUMER = `
import { create } from "@bufbuild/protobuf";
import { createClient } from "@connectrpc/connect";
import { createConnectTransport } from "@connectrpc/connect-node";
import { ProviderSchema, type Provider } from "provider-call-relay/relay/admin/v1";
import { RelayService, type ResultRow } from "provider-call-relay/relay/v1";

const provider: Provider = create(ProviderSchema, { name: "github", apiOrigins: ["https://api.github.com"] });
const [baseUrl, publicKey, url] = process.argv.slice(2) as [string, string, string];
const client = createClient(RelayService, createConnectTransport({ baseUrl, httpVersion: "2" }));
const { rows } = await client.call({ providerName: "sandbox", userId: "ada", publicKey, call: { url, method: "GET" } });
const row: ResultRow | undefined = rows[0];
const status: number | undefined = row?.statusCode;
// @ts-expect-error: no field of a call
client.call({ nothing: 1 }).catch(() => {});
// @ts-expect-error: a number
const text: string | undefined = row?.statusCode;
process.stdout.write(JSON.stringify({ provider: provider.name, status, result: row?.pincStatus }));
`;

const run = promisify(execFile);

let folder: string;
let harness: Harness;
let application: TestApplication;
let files: string[];

beforeAll(async () => {
  harness = await startHarness();
  application = await harness.createApplication();
  await harness.connect(application, "ada");
  folder = mkdtempSync(join(tmpdir(), "relay-pack-"));
  if (!existsSync(join(ROOT, "dist/gen/relay/v1/relay_pb.js"))) await run("npm", ["run", "build"], { cwd: ROOT });
  const pack = ["pack", "--ignore-scripts", "--json", "--pack-destination", folder];
  const { stdout } = await run("npm", pack, { cwd: ROOT });
  const [packed] = JSON.parse(stdout) as [{ filename: string; files: { path: string }[] }];
  files = packed.files.map(({ path }) => path);
  writeFileSync(join(folder, "package.json"), '{"name":"consumer","private":true,"type":"module"}');
  const { dependencies } = JSON.parse(readFileSync(join(ROOT, "package.json"), "utf8"));
  const beside = ["@bufbuild/protobuf", "@connectrpc/connect", "@connectrpc/connect-node"];
  const pinned = beside.map((name) => `${name}@${dependencies[name]}`);
  const quiet = ["--ignore-scripts", "--no-audit", "--no-fund", "--prefer-offline"];
  await run("npm", ["install", ...quiet, join(folder, packed.filename), ...pinned], { cwd: folder });
  writeFileSync(join(folder, "consumer.ts"), CONSUMER);
}, INSTALL_TIMEOUT_MS);

afterAll(async () => {
  await harness.close();
  rmSync(folder, { recursive: true, force: true });
});

function compile(...options: string[]) {
  const types = ["--typeRoots", join(ROOT, "node_modules/@types"), "--types", "node", "--skipLibCheck"];
  const args = ["--strict", "--target", "es2023", "--exactOptionalPropertyTypes", ...types, ...options, "consumer.ts"];
  return run(TSC, args, { cwd: folder });
}

describe("the packed package", () => {
  it("has what a user needs, and nothing else", () => {
    expect(files).toEqual(
      expect.arrayContaining(["LICENSE", "README.md", "SECURITY.md", "proto/relay/v1/relay.proto"]),
    );
    expect(files).toEqual(expect.arrayContaining(["dist/src/cli/relay.js", "dist/src/providers/catalog/github.json"]));
    const strange = files.filter(
      (path) => !/^(dist\/(src|gen)\/|proto\/relay\/|docs\/|[A-Z]+(\.md)?$|package\.json$)/.test(path),
    );
    expect(strange).toEqual([]);
    expect(files.filter((path) => /(^|\/)(test|node_modules|data)\/|\.(db|key|pem)$/.test(path))).toEqual([]);
  });

  it("has all files of its console", async () => {
    const module = join(folder, "node_modules/provider-call-relay/dist/src/admin/console-files.js");
    const program = `const { loadConsoleFiles } = await import(${JSON.stringify(module)});
      process.stdout.write([...loadConsoleFiles()].map(([name, { content }]) => name + " " + content.length).join());`;
    const { stdout } = await run("node", ["--input-type=module", "-e", program], { cwd: folder });
    const sizes = new Map(stdout.split(",").map((line) => line.split(" ") as [string, string]));
    for (const name of ["", "main.js", "console.css", "icon.svg", "lit-html.js", "live-view.js"]) {
      expect([name, Number(sizes.get(name))]).toEqual([name, expect.any(Number)]);
      expect(Number(sizes.get(name))).toBeGreaterThan(50);
    }
  });

  it("offers its messages, and no other part of itself", async () => {
    const tryImport = (path: string) =>
      run("node", ["--input-type=module", "-e", `await import(${JSON.stringify(path)})`], { cwd: folder });
    for (const path of [
      "provider-call-relay",
      "provider-call-relay/dist/src/server.js",
      "provider-call-relay/relay/v2",
    ]) {
      await expect(tryImport(path)).rejects.toThrow(/ERR_PACKAGE_PATH_NOT_EXPORTED/);
    }
    await tryImport("provider-call-relay/relay/v1");
    await tryImport("provider-call-relay/relay/admin/v1");
    await tryImport("provider-call-relay/relay/admin/v1/application");
  });

  it.each([
    ["nodenext", "nodenext"],
    ["esnext", "bundler"],
  ])("type-checks with module %s and moduleResolution %s", async (module, moduleResolution) => {
    await compile("--noEmit", "--module", module, "--moduleResolution", moduleResolution);
  });

  it("makes a typed call from another folder", async () => {
    await compile("--module", "nodenext");
    const url = `${harness.sandbox.origin}/me`;
    const { stdout } = await run("node", ["consumer.js", harness.url, application.publicKey, url], { cwd: folder });
    expect(JSON.parse(stdout)).toEqual({ provider: "github", status: 200, result: "success" });
  });
});
