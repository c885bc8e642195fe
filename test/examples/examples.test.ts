import { execFile, execFileSync } from "node:child_process";
import { mkdtempSync, readdirSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { promisify } from "node:util";
import { afterAll, beforeAll, describe, expect, it, type TestOptions } from "vitest";
import { type Demo, startDemo } from "../support/demo.js";

const run = promisify(execFile);
const EXAMPLES = "docs/examples";

let demo: Demo;
let env: NodeJS.ProcessEnv;
beforeAll(async () => {
  demo = await startDemo();
  env = { ...process.env, RELAY_URL: demo.relayUrl, API_URL: demo.sandboxOrigin };
});
afterAll(() => demo.close());

/** Options of a test that needs a program: without it the test is skipped, and the run says so. */
function needs(what: string, command: string, ...args: readonly string[]): TestOptions {
  try {
    execFileSync(command, args, { stdio: "ignore" });
    return {};
  } catch {
    return { skip: true, meta: { skippedBecause: `there is no ${what} on this machine` } };
  }
}

/** A Python that has grpcio: the machine's own may be another one than that of its packages. */
function findPython(): string | undefined {
  return ["python3", "/usr/bin/python3"].find(
    (python) => needs("", python, "-c", "import grpc, google.protobuf").skip !== true,
  );
}

async function outputOf(command: string, ...args: readonly string[]): Promise<string> {
  return (await run(command, args, { env })).stdout;
}

describe("docs/examples", () => {
  it("are all executed by a test, and all told of in their README", () => {
    const folders = readdirSync(EXAMPLES, { withFileTypes: true }).filter((entry) => entry.isDirectory());
    const names = folders.map(({ name }) => name);
    expect(names.sort()).toEqual(["browser", "buf-curl", "curl", "grpc-js", "node", "python"]);
    const readme = readFileSync(join(EXAMPLES, "README.md"), "utf8");
    for (const name of names) expect(readme).toContain(`](${name}`);
  });

  it("call from Node.js with the client package", async () => {
    const stdout = await outputOf("npx", "tsx", `${EXAMPLES}/node/client.ts`);
    expect(stdout).toMatch(/login: 'ada'[\s\S]*text: 'hi'[\s\S]*API_ERROR 404 false [0-9a-f-]{36}\n/);
  });

  it("call from Node.js over Connect, with types", async () => {
    const stdout = await outputOf("npx", "tsx", `${EXAMPLES}/node/call.ts`);
    expect(stdout).toMatch(/login: 'ada'[\s\S]*text: 'hi'[\s\S]*API_ERROR \(404\): .* \[call /);
  });

  it("call from Node.js with @grpc/grpc-js", async () => {
    expect(await outputOf("node", `${EXAMPLES}/grpc-js/call.mjs`)).toMatch(/^success \{[\s\S]*login: 'ada'/);
  });

  it("call with curl", needs("curl", "curl", "--version"), async () => {
    const stdout = await outputOf("bash", `${EXAMPLES}/curl/call.sh`);
    expect(stdout).toMatch(/"pincStatus":"success"[\s\S]*\n\{"ok":true,[\s\S]*"errorType":"API_ERROR"[\s\S]*\na{12}\n/);
  });

  it("call with buf curl over each protocol", async () => {
    const stdout = await outputOf("bash", `${EXAMPLES}/buf-curl/call.sh`);
    expect(stdout.match(/"pincStatus": "success"/g)).toHaveLength(3);
    expect(stdout).toMatch(/relay\.v1\.RelayService\/Call\n[\s\S]*"status": "SERVING"/);
  });
});

const python = findPython();
const plugin = needs("grpc_python_plugin (Debian: protobuf-compiler-grpc)", "which", "protoc", "grpc_python_plugin");
const noPython = { skip: true, meta: { skippedBecause: "there is no Python with grpcio on this machine" } };

describe("docs/examples/python", python === undefined ? noPython : plugin, () => {
  let folder: string;
  beforeAll(() => {
    folder = mkdtempSync(join(tmpdir(), "relay-python-"));
  });
  afterAll(() => rmSync(folder, { recursive: true, force: true }));

  it("calls over gRPC with code that buf generated", async () => {
    await run("npx", ["buf", "generate", "--template", `${EXAMPLES}/python/buf.gen.yaml`, "--output", folder]);
    const paths = { PYTHONPATH: join(folder, "gen-python"), PYTHONDONTWRITEBYTECODE: "1" };
    const { stdout } = await run(python ?? "", [`${EXAMPLES}/python/call.py`], { env: { ...env, ...paths } });
    expect(stdout).toMatch(/'login': 'ada'[\s\S]*'text': 'hi'[\s\S]*API_ERROR \(404\): .* \[call /);
  });
});
