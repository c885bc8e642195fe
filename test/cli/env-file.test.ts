import { existsSync, readdirSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { describe, expect, it } from "vitest";
import { createFolder } from "./run-relay.js";

/** An empty variable counts as not set. */
const NO_SETTINGS = { RELAY_DATABASE: "", RELAY_KEY_FILE: "" };

describe("a file of settings", () => {
  const FILE = `# Settings\nexport RELAY_DATABASE='sqlite:named.db'\n\nRELAY_KEY_FILE=named.key # the keys\n`;

  it("is read where it is named, and a variable of the environment counts before it", async () => {
    const folder = createFolder();
    writeFileSync(join(folder.path, "some.env"), FILE);
    const named = ["--env-file", "some.env", "app", "create", "A", "--json"];
    expect((await folder.run(named, { env: { ...NO_SETTINGS } })).exitCode).toBe(0);
    expect(readdirSync(folder.path).filter((name) => /^named\.(db|key)$/.test(name))).toHaveLength(2);
    const env = { ...NO_SETTINGS, RELAY_DATABASE: "sqlite:other.db" };
    expect((await folder.run(named, { env })).exitCode).toBe(0);
    expect(existsSync(join(folder.path, "other.db"))).toBe(true);
    const after = await folder.run(["app", "list", "--json", "--env-file", "some.env"], { env: NO_SETTINGS });
    expect(JSON.parse(after.stdout)).toHaveLength(1);
  });

  it("is read beside the database without being named", async () => {
    const folder = createFolder();
    writeFileSync(join(folder.path, "relay.env"), "RELAY_DEADLINE_MS=1234\nRELAY_LISTN=x\n");
    const { exitCode, stdout, stderr } = await folder.run(["config", "check", "--json"]);
    expect([exitCode, JSON.parse(stdout).settings.RELAY_DEADLINE_MS]).toEqual([0, "1234"]);
    expect(stderr).toBe(
      "warning: RELAY_LISTN: is not a setting of this version and is ignored. Did you mean RELAY_LISTEN?\n",
    );
    const named = await folder.run(["--env-file", "/dev/null", "config", "check", "--json"]);
    expect(JSON.parse(named.stdout).settings.RELAY_DEADLINE_MS).toBe("30000");
  });

  it("may begin with a byte order mark, as some editors write it", async () => {
    const folder = createFolder();
    writeFileSync(join(folder.path, "relay.env"), "\uFEFFRELAY_DEADLINE_MS=1234\r\n");
    const { stdout } = await folder.run(["config", "check", "--json"]);
    expect(JSON.parse(stdout).settings.RELAY_DEADLINE_MS).toBe("1234");
  });

  it.each([
    ["that is not there", "missing.env", undefined, /^--env-file: missing\.env cannot be read \(ENOENT\)\.$/],
    ["that is a folder", ".", undefined, /^--env-file: \. cannot be read \(EISDIR\)\.$/],
    ["with a line of another form", "some.env", "# a\nRELAY_LISTEN 8080", /^some\.env: line 2 must be NAME=VALUE\.$/],
    ["with a wrong value", "some.env", "RELAY_LISTEN=8080", /^RELAY_LISTEN: expected host:port/],
  ])("%s stops the command with 2", async (_, file, text, problem) => {
    const folder = createFolder();
    if (text !== undefined) writeFileSync(join(folder.path, file), text);
    const result = await folder.run(["--env-file", file, "config", "check"]);
    expect(result).toMatchObject({ exitCode: 2, stdout: "" });
    expect(result.stderr.trim()).toMatch(problem);
  });

  it("says of a variable that Node.js has read before that it does nothing", async () => {
    const folder = createFolder();
    writeFileSync(join(folder.path, "relay.env"), "NODE_EXTRA_CA_CERTS=ca.pem\nNODE_ENV=production\n");
    const { stderr } = await folder.run(["config", "check"]);
    expect(stderr).toMatch(/^warning: \S*relay\.env: NODE_EXTRA_CA_CERTS has no effect in this file/);
    expect(stderr).not.toContain("NODE_ENV has");
  });
});
