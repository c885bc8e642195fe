import { existsSync, readdirSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { describe, expect, it } from "vitest";
import { createFolder } from "./run-relay.js";

const TOKENS = '{"access_token":"t"}';
const CLIENT = '{"client_id":"c","client_secret":"s"}';
const AT = ["--app", "key", "--user", "ada", "--provider", "github"];

interface OnAStore {
  readonly command: string;
  readonly args?: readonly string[];
  readonly input?: string;
}

/** Every command that works on a store which must be there already: its arguments, and its standard input. */
const ON_A_STORE: readonly OnAStore[] = [
  { command: "app list" },
  { command: "app show", args: ["key"] },
  { command: "app update", args: ["key", "--name", "n"] },
  { command: "app rotate-key", args: ["key"] },
  { command: "app delete", args: ["key"] },
  { command: "app capture", args: ["key"] },
  { command: "calls list", args: ["--app", "key"] },
  { command: "calls show", args: ["019ac7c2-0000-7000-8000-000000000000"] },
  { command: "client put", args: ["--app", "key", "--provider", "github"], input: CLIENT },
  { command: "client list", args: ["--app", "key"] },
  { command: "client delete", args: ["--app", "key", "--provider", "github"] },
  { command: "connection link", args: ["--app", "key", "--user", "ada"] },
  { command: "connection put", args: AT, input: TOKENS },
  { command: "connection import", args: ["--app", "key"] },
  { command: "connection export", args: ["--sealed", "transfer.key"] },
  { command: "connection list", args: ["--app", "key"] },
  { command: "connection show", args: AT },
  { command: "connection refresh", args: AT },
  { command: "connection delete", args: AT },
  { command: "token create", args: ["--app", "key", "--user", "ada"] },
  { command: "webhook put", args: ["--app", "key", "https://app.example/hook"] },
  { command: "webhook show", args: ["--app", "key"] },
  { command: "webhook test", args: ["--app", "key"] },
  { command: "webhook deliveries", args: ["--app", "key"] },
  { command: "webhook delete", args: ["--app", "key"] },
  { command: "audit list" },
  { command: "key rotate" },
  { command: "db migrate" },
  { command: "db backup", args: ["copy.db"] },
  { command: "db drill" },
  { command: "db copy", args: ["--from", "sqlite:missing.db", "--to", "postgres://u@127.0.0.1:1/d"] },
];

/** Those that make a store, and those that need none. */
const OTHERS = [
  "start",
  "console",
  "serve",
  "demo",
  "app create",
  "call",
  "config check",
  "key create",
  "provider list",
  "provider show",
  "provider check",
];

/** Names of the commands that a help lists. */
async function listed(group: readonly string[]): Promise<string[]> {
  const { stdout } = await createFolder().run([...group, "--help"]);
  const commands = stdout.split("\nCommands:\n")[1]?.split("\n\n")[0] ?? "";
  return [...commands.matchAll(/^ {2}([a-z-]+)/gm)].map(([, name]) => name ?? "").filter((name) => name !== "help");
}

describe("a database that is not there", () => {
  it("is known for every command", async () => {
    const inGroups = (await listed([])).map(async (name) => {
      const inside = await listed([name]);
      return inside.length === 0 ? [name] : inside.map((each) => `${name} ${each}`);
    });
    const all = (await Promise.all(inGroups)).flat();
    expect([...ON_A_STORE.map(({ command }) => command), ...OTHERS].sort()).toEqual(all.sort());
  });

  it.each(ON_A_STORE)(
    "is not made by relay $command, nor is a key file",
    async ({ command, args = [], input = "" }) => {
      const folder = createFolder();
      const env = { RELAY_DATABASE: "sqlite:mistyped/relay.db", RELAY_KEY_FILE: "mistyped/relay.key" };
      const { exitCode, stdout, stderr } = await folder.run([...command.split(" "), ...args], { env, input });
      expect({ exitCode, stdout }).toEqual({ exitCode: 2, stdout: "" });
      expect(stderr).toMatch(/(mistyped\/relay|missing)\.db does not exist/);
      expect(readdirSync(folder.path)).toEqual([]);
    },
  );

  it("is made by relay app create, but not in production", async () => {
    const folder = createFolder();
    const env = { NODE_ENV: "production" };
    expect((await folder.run(["app", "create", "A"], { env })).stderr).toMatch(/relay\.db does not exist/);
    expect(readdirSync(folder.path)).toEqual([]);
    await folder.json(["app", "create", "A"]);
    expect(existsSync(join(folder.path, "relay.key"))).toBe(true);
  });

  it("gets no key file of its own beside one that is there", async () => {
    const folder = createFolder();
    writeFileSync(join(folder.path, "relay.db"), "");
    expect((await folder.run(["app", "create", "A"])).exitCode).toBe(2);
    expect(readdirSync(folder.path)).toEqual(["relay.db"]);
  });
});
