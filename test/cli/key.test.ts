import { randomBytes } from "node:crypto";
import { copyFileSync, existsSync, mkdirSync, readFileSync, rmSync, statSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import Database from "better-sqlite3";
import { describe, expect, it, onTestFinished } from "vitest";
import { openSpool } from "../../src/store/spool.js";
import { openSqliteStore } from "../../src/store/sqlite.js";
import { ANSWER } from "../store/spool-for-test.js";
import { type CliFolder, prepareOnce } from "./run-relay.js";

const INPUT = JSON.stringify({ access_token: "canary-access", refresh_token: "canary-refresh" });

const folderWithConnection = prepareOnce(async (folder) => {
  const keys = await folder.json(["app", "create", "Shop"]);
  const args = ["--app", keys.publicKey, "--user", "ada", "--provider", "github"];
  await folder.json(["connection", "put", ...args], { input: INPUT });
  return { args };
});

const folderOfAnother = prepareOnce(async (folder) => folder.json(["app", "create", "Other"]));

const keyLines = (folder: CliFolder) => readFileSync(join(folder.path, "relay.key"), "utf8").trim().split("\n");

describe("relay key rotate", () => {
  it("puts a new key in front and seals the application and the connection with it", async () => {
    const { folder } = await folderWithConnection();
    const [old] = keyLines(folder);
    const { keyId, resealed, left } = await folder.json(["key", "rotate"]);
    expect({ resealed, left }).toEqual({ resealed: 2, left: 0 });
    const lines = keyLines(folder);
    expect(lines).toHaveLength(2);
    expect(lines[0]?.split(":")[0]).toBe(keyId);
    expect(lines[1]).toBe(old);
    expect(statSync(join(folder.path, "relay.key")).mode & 0o777).toBe(0o600);
  });

  it("leaves nothing that needs the old key", async () => {
    const { folder, args } = await folderWithConnection();
    await folder.json(["key", "rotate"]);
    writeFileSync(join(folder.path, "relay.key"), `${keyLines(folder)[0]}\n`);
    expect(await folder.json(["connection", "show", ...args])).toMatchObject({ user: "ada", version: 1 });
    expect(await folder.json(["key", "rotate"])).toMatchObject({ resealed: 2, left: 0 });
  });
});

describe("relay key rotate beside a spool in which a relay that is gone left an answer", () => {
  it("says that the old key is needed until a relay has stored it", async () => {
    const { folder } = await folderWithConnection();
    const { id, close } = openSqliteStore(join(folder.path, "relay.db"));
    close();
    const spool = openSpool({
      folder: join(folder.path, "spool"),
      store: { id, path: undefined },
      onLeft: () => expect.fail("there is no other"),
      onFault: (error) => expect.fail(String(error)),
    });
    spool.keep(ANSWER);
    await spool.close(() => expect.fail("the leases stay with the answer"));
    const { exitCode, stdout, stderr } = await folder.run(["key", "rotate", "--json"]);
    expect([exitCode, JSON.parse(stdout)]).toMatchObject([1, { resealed: 2, left: 0 }]);
    expect(stderr).toMatch(
      /waiting in the spool, sealed with an older key: 1\. Keep all keys in the file, start the relay/,
    );
  });
});

describe("relay key rotate beside a spool that is damaged", () => {
  it("changes nothing and names the file", async () => {
    const { folder } = await folderWithConnection();
    const file = join(folder.path, "spool", "0123456789abcdef.spool");
    mkdirSync(join(folder.path, "spool"), { recursive: true });
    writeFileSync(file, Buffer.alloc(8192, 7));
    const before = keyLines(folder);
    const { exitCode, stderr } = await folder.run(["key", "rotate"]);
    expect([exitCode, stderr]).toEqual([1, expect.stringContaining("0123456789abcdef.spool: cannot be read")]);
    expect(keyLines(folder)).toEqual(before);
    rmSync(file);
    expect(await folder.json(["key", "rotate"])).toMatchObject({ resealed: 2, left: 0 });
  });
});

describe("relay key rotate on a store that cannot be written", () => {
  it("adds no key, since nothing would say who added it", async () => {
    const { folder } = await folderWithConnection();
    const before = keyLines(folder);
    const db = new Database(join(folder.path, "relay.db"));
    onTestFinished(() => void db.close());
    db.exec("BEGIN IMMEDIATE");
    const { exitCode, stderr } = await folder.run(["key", "rotate"]);
    expect([exitCode, stderr]).toEqual([1, expect.stringContaining("locked by another process")]);
    expect(keyLines(folder)).toEqual(before);
  });
});

describe("relay key rotate --no-add", () => {
  it("seals everything with the key that was put in front, and adds none", async () => {
    const { folder, args } = await folderWithConnection();
    const file = join(folder.path, "relay.key");
    const both = `mounted:${randomBytes(32).toString("base64")}\n${readFileSync(file, "utf8")}`;
    writeFileSync(file, both);
    expect(await folder.json(["key", "rotate", "--no-add"])).toEqual({ keyId: "mounted", resealed: 2, left: 0 });
    expect(readFileSync(file, "utf8")).toBe(both);
    writeFileSync(file, both.slice(0, both.indexOf("\n") + 1));
    expect(await folder.json(["connection", "show", ...args])).toMatchObject({ user: "ada" });
    expect(await folder.json(["key", "rotate", "--no-add"])).toEqual({ keyId: "mounted", resealed: 0, left: 0 });
  });
});

describe("a key file that does not belong to the database", () => {
  it.each([
    ["app", "list"],
    ["key", "rotate"],
  ])("stops relay %s %s with a clear error, and changes nothing", async (...command) => {
    const { folder } = await folderWithConnection();
    const { folder: other } = await folderOfAnother();
    copyFileSync(join(other.path, "relay.key"), join(folder.path, "relay.key"));
    const files = () => ["relay.key", "relay.db"].map((name) => readFileSync(join(folder.path, name), "latin1"));
    const before = files();
    const result = await folder.run(command);
    expect(result).toMatchObject({ exitCode: 2, stdout: "" });
    expect(result.stderr).toMatch(/RELAY_KEY_FILE/);
    expect(files()).toEqual(before);
  });

  it("is not made anew when it is lost", async () => {
    const { folder } = await folderWithConnection();
    rmSync(join(folder.path, "relay.key"));
    const result = await folder.run(["app", "list"]);
    expect(result).toMatchObject({ exitCode: 2, stdout: "" });
    expect(result.stderr).toMatch(/relay\.key/);
    expect(existsSync(join(folder.path, "relay.key"))).toBe(false);
  });

  it("names the line that is malformed and never its content", async () => {
    const { folder } = await folderWithConnection();
    writeFileSync(join(folder.path, "relay.key"), `${keyLines(folder)[0]}\nk2:secret-text\n`);
    const result = await folder.run(["key", "rotate"]);
    expect(result).toMatchObject({ exitCode: 2, stdout: "" });
    expect(result.stderr).toMatch(/line 2/);
    expect(result.stderr).not.toContain("secret-text");
  });
});

describe("a database that is none", () => {
  it("stops the command with the file's name", async () => {
    const { folder } = await folderWithConnection();
    writeFileSync(join(folder.path, "notes.txt"), "x".repeat(4096));
    const result = await folder.run(["app", "list"], { env: { RELAY_DATABASE: "sqlite:notes.txt" } });
    expect(result).toMatchObject({ exitCode: 1, stdout: "" });
    expect(result.stderr).toMatch(/notes\.txt/);
  });
});
