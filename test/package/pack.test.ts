import { execFile } from "node:child_process";
import { existsSync, mkdirSync, mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { promisify } from "node:util";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { type Harness, startHarness, type TestApplication } from "../support/harness.js";

const ROOT = new URL("../../", import.meta.url).pathname;
const BIN = join(ROOT, "node_modules/.bin");
/** npm fetches the dependencies from the registry, or from its cache. */
const INSTALL_TIMEOUT_MS = 240_000;
const COMPILE_TIMEOUT_MS = 120_000;

/** A caller in TypeScript. A line that must not compile shows that the types are there, and not `any`. */
const CALLER = `
import { create, toJson } from "@bufbuild/protobuf";
import { ValueSchema } from "@bufbuild/protobuf/wkt";
import { createClient } from "@connectrpc/connect";
import { createConnectTransport } from "@connectrpc/connect-web";
import { type CallAnswer, createCallToken, createRelayClient, signUser, verifyWebhook } from "provider-call-relay-client";
import { type ConnectResult, connectAccount } from "provider-call-relay-client/browser";
import { ProviderSchema, type Provider } from "provider-call-relay-client/relay/admin/v1";
import { ApplicationService } from "provider-call-relay-client/relay/admin/v1/application";
import { RelayService, type ResultRow } from "provider-call-relay-client/relay/v1";

const provider: Provider = create(ProviderSchema, { name: "github", apiOrigins: ["https://api.github.com"] });
const [baseUrl, publicKey, url] = process.argv.slice(2) as [string, string, string];
const transport = createConnectTransport({ baseUrl });
const client = createClient(RelayService, transport);
createClient(ApplicationService, transport);
const { rows } = await client.call({ providerName: "sandbox", userId: "ada", publicKey, call: { url, method: "GET" } });
const row: ResultRow | undefined = rows[0];
const status: number | undefined = row?.statusCode;
const data = row?.data && toJson(ValueSchema, row.data);
// @ts-expect-error: no field of a call
client.call({ nothing: 1 }).catch(() => {});
// @ts-expect-error: a number
const text: string | undefined = row?.statusCode;
const account = createRelayClient({ url: baseUrl, publicKey }).account("ada", "sandbox");
const plain: CallAnswer<{ sub: string }> = await account.call<{ sub: string }>({ url });
const proof: string = await createCallToken({ publicKey, privateKey: "p", userId: await signUser("p", "ada") });
if (proof === "") verifyWebhook("", "", {});
const connect = (): Promise<ConnectResult> => connectAccount({ link: "" });
if (proof === "") await connect();
// @ts-expect-error: no option of a call
account.call({ nothing: 1 }).catch(() => {});
const { sub } = plain.data;
process.stdout.write(JSON.stringify({ provider: provider.name, status, result: row?.pincStatus, data, sub }));
`;

const run = promisify(execFile);

let folder: string;
let harness: Harness;
let application: TestApplication;
/** Each a .tgz. */
let service: string;
let client: string;

beforeAll(async () => {
  harness = await startHarness();
  application = await harness.createApplication();
  await harness.connect(application, "ada");
  folder = mkdtempSync(join(tmpdir(), "relay-pack-"));
  if (!existsSync(join(ROOT, "client/gen/relay/v1/relay_pb.js"))) await run("npm", ["run", "build"], { cwd: ROOT });
  service = await pack(ROOT);
  client = await pack(join(ROOT, "client"));
}, INSTALL_TIMEOUT_MS);

afterAll(async () => {
  await harness.close();
  rmSync(folder, { recursive: true, force: true });
});

async function pack(cwd: string): Promise<string> {
  const { stdout } = await run("npm", ["pack", "--ignore-scripts", "--json", "--pack-destination", folder], { cwd });
  const [{ filename }] = JSON.parse(stdout) as [{ filename: string }];
  return join(folder, filename);
}

/** An empty project in a folder of its own, with these packages. */
async function project(name: string, ...packages: string[]): Promise<string> {
  const cwd = join(folder, name);
  mkdirSync(cwd);
  writeFileSync(join(cwd, "package.json"), '{"name":"caller","private":true,"type":"module"}');
  await run("npm", ["install", "--no-audit", "--no-fund", "--prefer-offline", "--ignore-scripts", ...packages], {
    cwd,
  });
  return cwd;
}

describe("the service's package", () => {
  it(
    "has all files of its console, and offers no part of itself to programs",
    async () => {
      const cwd = await project("operator", service);
      const module = join(cwd, "node_modules/provider-call-relay/dist/src/admin/console-handler.js");
      const names = ["", "console.js", "console.css", "icon.svg", "lit-html.js", "live-view.js"];
      const program = `const { createConsoleHandler } = await import(${JSON.stringify(module)});
        const handle = createConsoleHandler();
        for (const name of ${JSON.stringify(names)}) {
          const response = { writeHead: (status, fields) => console.log(status, fields["content-length"]), end() {} };
          handle({ method: "HEAD" }, response, "/console/" + name);
        }`;
      const { stdout } = await run("node", ["--input-type=module", "-e", program], { cwd });
      const answers = stdout
        .trim()
        .split("\n")
        .map((line) => line.split(" ").map(Number));
      expect(answers.map(([status]) => status)).toEqual(names.map(() => 200));
      for (const [, length] of answers) expect(length).toBeGreaterThan(50);
      for (const path of ["provider-call-relay", "provider-call-relay/dist/src/app/server.js"]) {
        const attempt = run("node", ["--input-type=module", "-e", `await import(${JSON.stringify(path)})`], { cwd });
        await expect(attempt).rejects.toThrow(/ERR_PACKAGE_PATH_NOT_EXPORTED/);
      }
    },
    INSTALL_TIMEOUT_MS,
  );
});

describe("the callers' package", () => {
  const { devDependencies, dependencies } = JSON.parse(readFileSync(join(ROOT, "package.json"), "utf8"));

  describe.each([
    ["pinned", dependencies["@bufbuild/protobuf"], devDependencies["@connectrpc/connect-web"]],
    ["newest", "2", "2"],
  ])("beside the %s versions of protobuf-es and Connect", (name, protobuf, connect) => {
    let cwd: string;
    beforeAll(async () => {
      const beside = [
        `@bufbuild/protobuf@${protobuf}`,
        `@connectrpc/connect@${connect}`,
        `@connectrpc/connect-web@${connect}`,
      ];
      cwd = await project(name, client, ...beside);
      writeFileSync(join(cwd, "caller.ts"), CALLER);
    }, INSTALL_TIMEOUT_MS);

    function compile(...options: string[]) {
      const types = ["--typeRoots", join(ROOT, "node_modules/@types"), "--types", "node", "--skipLibCheck"];
      const args = [
        "--strict",
        "--target",
        "es2023",
        "--exactOptionalPropertyTypes",
        ...types,
        ...options,
        "caller.ts",
      ];
      return run(join(BIN, "tsc"), args, { cwd }).catch(({ stdout }) => expect.fail(stdout));
    }

    it("is installed once, with one version of each peer and no native code", () => {
      const installed = readdirSync(join(cwd, "node_modules"), { recursive: true, encoding: "utf8" });
      const copies = installed.filter((path) => /@bufbuild\/protobuf$|@connectrpc\/connect$/.test(path));
      expect(copies.sort()).toEqual(["@bufbuild/protobuf", "@connectrpc/connect"]);
      expect(installed.filter((path) => /\.node$|binding\.gyp$/.test(path))).toEqual([]);
    });

    it(
      "type-checks with every module resolution that has exports",
      async () => {
        // The declarations of every package are judged here as well.
        await compile("--noEmit", "--module", "node16", "--skipLibCheck", "false");
        await compile("--noEmit", "--module", "esnext", "--moduleResolution", "bundler");
      },
      COMPILE_TIMEOUT_MS,
    );

    it(
      "makes a typed call",
      async () => {
        await compile("--module", "nodenext");
        const url = `${harness.sandbox.origin}/me`;
        const { stdout } = await run("node", ["caller.js", harness.url, application.publicKey, url], { cwd });
        const expected = { provider: "github", status: 200, result: "success", data: { sub: "1001" }, sub: "1001" };
        expect(JSON.parse(stdout)).toMatchObject(expected);
      },
      COMPILE_TIMEOUT_MS,
    );
  });

  describe("its proto folder", () => {
    let proto: string;
    beforeAll(async () => {
      await run("tar", ["-xzf", client], { cwd: folder });
      proto = join(folder, "package/proto");
    });

    it("compiles by itself", async () => {
      await run(join(BIN, "buf"), ["build", "."], { cwd: proto });
    });

    it("names the packages of Go and Java in every file", async () => {
      const { stdout } = await run(join(BIN, "buf"), ["build", ".", "-o", "-#format=json"], {
        cwd: proto,
        maxBuffer: 64 * 1024 * 1024,
      });
      const { file } = JSON.parse(stdout) as { file: { name: string; options?: Record<string, unknown> }[] };
      const own = file.filter(({ name }) => name.startsWith("relay/"));
      expect(own.length).toBeGreaterThan(10);
      for (const { name, options } of own) {
        const [where, go, java] = name.startsWith("relay/admin/")
          ? ["relay/admin/v1", "adminv1", "providercallrelay.admin.v1"]
          : ["relay/v1", "relayv1", "providercallrelay.v1"];
        expect({ name, ...options }).toMatchObject({
          goPackage: `provider-call-relay/gen/${where};${go}`,
          javaPackage: java,
          javaMultipleFiles: true,
        });
      }
    });

    it("becomes Python and Java without a word", async () => {
      const out = join(folder, "generated");
      const template = { version: "v2", plugins: ["python", "java"].map((name) => ({ protoc_builtin: name, out })) };
      const found = await run("protoc", ["--version"]).catch(() => undefined);
      if (found === undefined) return expect(process.env["CI"], "CI installs protoc").toBeUndefined();
      await run(join(BIN, "buf"), ["generate", "--template", JSON.stringify(template)], { cwd: proto });
      const generated = readdirSync(out, { recursive: true, encoding: "utf8" });
      expect(generated).toEqual(
        expect.arrayContaining(["relay/v1/relay_pb2.py", "providercallrelay/v1/CallRequest.java"]),
      );
      const check =
        "import sys; sys.path.insert(0, sys.argv[1]); from relay.v1 import relay_pb2; relay_pb2.CallRequest()";
      await run("/usr/bin/python3", ["-c", check, out]);
    });
  });
});
