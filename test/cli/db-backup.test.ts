import { once } from "node:events";
import {
  closeSync,
  copyFileSync,
  existsSync,
  openSync,
  readdirSync,
  readFileSync,
  rmSync,
  statSync,
  watch,
  writeFileSync,
  writeSync,
} from "node:fs";
import { join } from "node:path";
import Database from "better-sqlite3";
import { describe, expect, it, onTestFinished } from "vitest";
import { IS_LONG } from "../support/long.js";
import { type CliFolder, createFolder, prepareOnce, startServe } from "./run-relay.js";

const TOKENS = '{"access_token":"canary-access","refresh_token":"canary-refresh"}';

const putArguments = (publicKey: string, user: string) => [
  ...["connection", "put", "--app", publicKey, "--provider", "github"],
  ...["--user", user],
];

const withOneUser = prepareOnce(async (folder) => {
  const { publicKey } = await folder.json(["app", "create", "Shop"]);
  await folder.json(putArguments(publicKey, "before"), { input: TOKENS });
  return { publicKey: publicKey as string };
});

/** A relay with one application and a connected user, and a way to connect others. */
async function filledFolder() {
  const { folder, publicKey } = await withOneUser();
  const connect = (user: string) => folder.json(putArguments(publicKey, user), { input: TOKENS });
  const users = async (env = {}) => {
    const connections = await folder.json(["connection", "list", "--app", publicKey], { env });
    return connections.map(({ user }: { user: string }) => user);
  };
  return { folder, connect, users };
}

const copyOf = (folder: CliFolder) => ({ RELAY_DATABASE: `sqlite:${join(folder.path, "copy.db")}` });

describe("relay db backup", () => {
  it("copies one moment into one file of the owner's, which the key file opens", async () => {
    const { folder, connect, users } = await filledFolder();
    const result = await folder.json(["db", "backup", "copy.db"]);
    expect(result).toMatchObject({ database: folder.env["RELAY_DATABASE"], file: "copy.db" });
    const { mode, size } = statSync(join(folder.path, "copy.db"));
    expect([mode & 0o777, size]).toEqual([0o600, result.bytes]);
    expect(readdirSync(folder.path).filter((name) => name.startsWith("copy"))).toEqual(["copy.db"]);
    expect(readFileSync(join(folder.path, "copy.db"), "latin1")).not.toContain("canary");
    await connect("after");
    expect(await users()).toEqual(expect.arrayContaining(["before", "after"]));
    expect(await users(copyOf(folder))).toEqual(["before"]);
  });

  it("is restored by putting the file in its place", async () => {
    const { folder, connect, users } = await filledFolder();
    await folder.json(["db", "backup", "copy.db"]);
    await connect("after");
    for (const name of ["relay.db", "relay.db-wal", "relay.db-shm"]) rmSync(join(folder.path, name), { force: true });
    copyFileSync(join(folder.path, "copy.db"), join(folder.path, "relay.db"));
    expect((await folder.json(["config", "check"])).ok).toBe(true);
    expect(await users()).toEqual(["before"]);
  });

  it("replaces nothing, leaves nothing behind, and does not bring the database up to date", async () => {
    const { folder } = await filledFolder();
    writeFileSync(join(folder.path, "copy.db"), "precious");
    const refused = await folder.run(["db", "backup", "copy.db"]);
    expect(refused).toMatchObject({ exitCode: 1, stdout: "" });
    expect(refused.stderr).toMatch(/copy\.db: already exists/);
    expect(readFileSync(join(folder.path, "copy.db"), "utf8")).toBe("precious");
    const missing = await folder.run(["db", "backup", "missing/copy.db"]);
    expect(missing).toMatchObject({
      exitCode: 1,
      stderr: expect.stringMatching(/\(ENOENT\); check its path, its folder/),
    });
    const db = new Database(join(folder.path, "relay.db"));
    db.pragma("user_version = 99");
    db.close();
    await folder.json(["db", "backup", "newer.db"]);
    const newer = new Database(join(folder.path, "newer.db"), { readonly: true });
    expect(newer.pragma("user_version", { simple: true })).toBe(99);
    newer.close();
    writeFileSync(join(folder.path, "relay.db"), "no database of SQLite's, but long enough for one".repeat(20));
    expect((await folder.run(["db", "backup", "damaged.db"])).exitCode).toBe(1);
    expect(existsSync(join(folder.path, "damaged.db"))).toBe(false);
  });

  it("says that the database is damaged, not the copy, and keeps none", async () => {
    const { folder } = await filledFolder();
    const db = new Database(join(folder.path, "relay.db"));
    db.pragma("wal_checkpoint(TRUNCATE)");
    const page = db.prepare("SELECT pageno FROM dbstat WHERE name = 'applications'").pluck().get() as number;
    const size = db.pragma("page_size", { simple: true }) as number;
    db.close();
    const file = openSync(join(folder.path, "relay.db"), "r+");
    writeSync(file, Buffer.alloc(size, 0xff), 0, size, (page - 1) * size);
    closeSync(file);
    const { exitCode, stderr } = await folder.run(["db", "backup", "copy.db"]);
    expect([exitCode, stderr]).toEqual([1, expect.stringMatching(/relay\.db: the database itself is damaged/)]);
    expect(readdirSync(folder.path).filter((name) => name.startsWith("copy"))).toEqual([]);
  });

  it("says that another process has locked the database, and keeps no copy", async () => {
    const { folder } = await filledFolder();
    const other = new Database(join(folder.path, "relay.db"));
    onTestFinished(() => void other.close());
    other.pragma("locking_mode = EXCLUSIVE");
    other.exec("BEGIN IMMEDIATE; COMMIT");
    const { exitCode, stderr } = await folder.run(["db", "backup", "copy.db"]);
    expect([exitCode, stderr]).toEqual([1, expect.stringMatching(/relay\.db: is locked by another process/)]);
    expect(readdirSync(folder.path).filter((name) => name.startsWith("copy"))).toEqual([]);
  });

  it("says what PostgreSQL has for this", async () => {
    const env = { RELAY_DATABASE: "postgres://relay@127.0.0.1:1/relay" };
    const result = await createFolder().run(["db", "backup", "copy.db"], { env });
    expect(result).toMatchObject({ exitCode: 2, stdout: "" });
    expect(result.stderr).toMatch(/pg_dump/);
  });
});

/** They start a service, or copy a large file. */
if (IS_LONG) {
  describe("relay db backup, beside others", () => {
    it("has what a running service committed, while another process goes on writing", async () => {
      const { folder, connect, users } = await filledFolder();
      const { child } = await startServe(folder, { RELAY_ADMIN_LISTEN: "off" });
      await connect("beside");
      const db = new Database(join(folder.path, "relay.db"));
      onTestFinished(() => void db.close());
      const write = db.prepare("UPDATE applications SET name = ?");
      let writes = 0;
      const writer = setInterval(() => write.run(`name ${writes++}`), 1);
      expect((await folder.run(["db", "backup", "copy.db"])).exitCode).toBe(0);
      clearInterval(writer);
      expect(writes).toBeGreaterThan(0);
      expect(await users(copyOf(folder))).toEqual(expect.arrayContaining(["before", "beside"]));
      child.kill("SIGTERM");
    });

    it("has a file under its name only when it is whole, and goes on after one that was killed", async () => {
      const { folder, users } = await filledFolder();
      // Large enough that the copy and its check take some time.
      const db = new Database(join(folder.path, "relay.db"));
      const numbers = "WITH RECURSIVE n (i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 10000)";
      db.exec(`CREATE TABLE filler AS ${numbers} SELECT i, randomblob(4000) AS bytes FROM n`).close();
      const names = () => readdirSync(folder.path).filter((name) => name.startsWith("copy.db"));
      const child = folder.start(["db", "backup", "copy.db"]);
      const watcher = watch(folder.path, () => names().length > 0 && child.kill("SIGKILL"));
      expect(await once(child, "exit")).toEqual([null, "SIGKILL"]);
      watcher.close();
      expect(names().filter((name) => name.includes(".draft")).length).toBeGreaterThan(0);
      expect(names()).not.toContain("copy.db");
      expect((await folder.run(["db", "backup", "copy.db"])).exitCode).toBe(0);
      expect(names()).toEqual(["copy.db"]);
      expect(await users(copyOf(folder))).toEqual(["before"]);
    });
  });
}
