import { readdirSync } from "node:fs";
import { build } from "esbuild";
import { beforeAll, describe, expect, it } from "vitest";
import manifest from "../../package.json" with { type: "json" };
import { SETTINGS } from "../../src/config/setting-list.js";
import { createFolder } from "./run-relay.js";

const COMMANDS = [
  "start",
  "console",
  "serve",
  "demo",
  "call",
  "calls list",
  "calls show",
  "app create",
  "app list",
  "app show",
  "app update",
  "app capture",
  "app rotate-key",
  "app delete",
  "provider list",
  "provider show",
  "provider check",
  "connection link",
  "connection put",
  "connection list",
  "connection show",
  "connection refresh",
  "connection delete",
  "webhook put",
  "webhook show",
  "webhook test",
  "webhook deliveries",
  "webhook delete",
  "audit list",
  "key rotate",
  "db backup",
  "db drill",
  "db migrate",
  "db copy",
  "config check",
];

describe("relay --help", () => {
  it.each(["", "app", "calls", "provider", "connection", "webhook", "audit", "key", "db", "config", ...COMMANDS])(
    "relay %s --help has an example",
    async (command) => {
      const result = await createFolder().run([...command.split(" ").filter(Boolean), "--help"]);
      expect(result).toMatchObject({ exitCode: 0, stderr: "" });
      expect(result.stdout).toMatch(/^Usage: relay/);
      expect(result.stdout).toMatch(/Examples?:\n {2}\$ .*relay /);
      if (COMMANDS.includes(command)) expect(result.stdout).toMatch(/^ {2}--json /m);
    },
  );

  it("prints the package's version", async () => {
    expect((await createFolder().run(["--version"])).stdout).toBe(`${manifest.version}\n`);
  });

  it("names a default where there is one: a new application has it, a change keeps what is set", async () => {
    const helpOf = async (command: string) => (await createFolder().run(["app", command, "--help"])).stdout;
    expect(await helpOf("create")).toMatch(/a\s+day\s+at\s+most\s+and\s+by\s+default/);
    expect(await helpOf("update")).toMatch(/a\s+day\s+at\s+most/);
    expect(await helpOf("update")).not.toMatch(/by\s+default/);
  });

  it.each([["serve"], ["app", "create", "x"], ["--help"]])(
    "refuses %s, and opens no store, on a Node.js that aborts",
    async (...args) => {
      const folder = createFolder();
      const preload = `data:text/javascript,Object.defineProperty(process,"version",{value:"v24.20.0"})`;
      const env = { NODE_OPTIONS: `--import ${preload.replaceAll('"', "'")}` };
      const stderr = `Node.js 24.20.0 does not run this relay: install one of ${manifest.engines.node}\n`;
      expect(await folder.run(args, { env })).toEqual({ exitCode: 1, stdout: "", stderr });
      expect(readdirSync(folder.path)).toEqual([]);
    },
  );

  it("lists every setting with its default and reason under serve", async () => {
    const { stdout } = await createFolder().run(["serve", "--help"]);
    for (const { name, fallback, about } of SETTINGS) {
      expect(stdout).toContain(`${name} (${fallback === "" ? "no default" : `default ${fallback}`})\n      ${about}\n`);
    }
  });
});

describe("wrong usage", () => {
  it.each([
    ["an unknown command", ["serv"]],
    ["a group without its command", ["app"]],
    ["an unknown command of a group", ["app", "drop"]],
    ["an unknown option", ["app", "list", "--jsno"]],
    ["a missing argument", ["app", "create"]],
    ["an argument too many", ["app", "list", "all"]],
    ["a missing option", ["connection", "list"]],
    ["a value that is none of the choices", ["app", "create", "x", "--caller-auth", "none"]],
    ["an option without its value", ["connection", "list", "--app"]],
    ["a port that is none", ["demo", "--port", "80a"]],
    ["a header without a name", ["call", "p", "https://a.example", "--app", "k", "--user", "u", "-H", "x"]],
    ["a payload that is no object", ["call", "p", "https://a.example", "--app", "k", "--user", "u", "-d", "[1]"]],
    [
      "a relay that is no address",
      ["call", "p", "https://a.example", "--app", "k", "--user", "u", "--relay", "localhost:1"],
    ],
  ])("exits with 2 for %s, and says so on standard error only", async (_, args) => {
    const result = await createFolder().run(args);
    expect(result.exitCode).toBe(2);
    expect(result.stdout).toBe("");
    expect(result.stderr).not.toBe("");
  });

  it("exits with 2 when the environment is wrong, with every problem", async () => {
    const result = await createFolder().run(["app", "list"], {
      env: { RELAY_LISTEN: "8080", RELAY_DEADLINE_MS: "soon" },
    });
    expect(result).toMatchObject({ exitCode: 2, stdout: "" });
    expect(result.stderr).toMatch(/^RELAY_LISTEN: .*\nRELAY_DEADLINE_MS: .*\n$/);
  });
});

describe("a command", () => {
  const files = readdirSync("src/cli").filter((name) => /^[a-z]+\.ts$/.test(name));
  let imports: Readonly<Record<string, { readonly imports: readonly ModuleImport[] }>>;
  interface ModuleImport {
    readonly path: string;
    readonly kind: string;
    readonly external?: boolean;
  }

  beforeAll(async () => {
    const entryPoints = files.map((name) => `src/cli/${name}`);
    const output = { write: false, outdir: "unwritten", splitting: true, format: "esm", metafile: true } as const;
    const { metafile } = await build({ entryPoints, bundle: true, platform: "node", packages: "external", ...output });
    imports = metafile.inputs;
  });

  /** What is loaded with a module, before it does anything. */
  function packagesOf(module: string, seen = new Set<string>()): string[] {
    if (seen.has(module)) return [];
    seen.add(module);
    const loaded = imports[module]?.imports.filter(({ kind }) => kind === "import-statement") ?? [];
    return loaded.flatMap(({ path, external }) => (external ? path : packagesOf(path, seen)));
  }

  it.each(files)("waits with large packages until it has work for them: %s", (name) => {
    const packages = packagesOf(`src/cli/${name}`).filter((path) => !path.startsWith("node:"));
    const allowed = name === "calls.ts" ? /^(?:commander|@opentelemetry\/api)$/ : /^commander$/;
    expect(packages.filter((path) => !allowed.test(path))).toEqual([]);
  });
});
