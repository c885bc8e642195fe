import { execFileSync } from "node:child_process";
import { createHash } from "node:crypto";
import { once } from "node:events";
import { copyFileSync, readdirSync, readFileSync, rmSync, statSync, writeFileSync } from "node:fs";
import { open } from "node:fs/promises";
import { join } from "node:path";
import { setImmediate as nextTurn } from "node:timers/promises";
import Database from "better-sqlite3";
import { describe, expect, it, onTestFinished } from "vitest";
import { type PostgresLocation, parseDatabaseLocation } from "../../src/config/database-location.js";
import { migratePostgres } from "../../src/store/postgres.js";
import { createPool } from "../../src/store/postgres-pool.js";
import { createSession } from "../../src/store/postgres-session.js";
import { POSTGRES_MIGRATIONS } from "../../src/store/schema.js";
import { thin } from "../support/long.js";
import { createTestDatabase, POSTGRES_URL } from "../support/postgres.js";
import { type CliFolder, prepareOnce } from "./run-relay.js";

const TOKENS = '{"access_token":"CANARY-access","refresh_token":"CANARY-refresh"}';

const filled = prepareOnce(async (folder) => {
  const { publicKey } = await folder.json(["app", "create", "Shop"]);
  for (const user of ["ada", "bob"]) {
    const args = ["connection", "put", "--app", publicKey, "--provider", "github", "--user", user];
    await folder.json(args, { input: TOKENS });
  }
  return { publicKey: publicKey as string };
});

const hashes = ({ path }: CliFolder) =>
  readdirSync(path).map((name) => [
    name,
    createHash("sha256")
      .update(readFileSync(join(path, name)))
      .digest("hex"),
  ]);

/** Copied in a tenth of a second. */
const FILLER_BYTES = 100_000_000;
const MOST_FILLERS = 8;

/** What is no value of these: webhooks, tickets, clients. */
const NONE = { opened: 0, damaged: 0 };

describe("relay db drill", () => {
  it("restores a copy elsewhere, opens every sealed value with the key file, and leaves nothing", async () => {
    const { folder } = await filled();
    const before = hashes(folder);
    const { source, tables } = await folder.json(["db", "drill", "--folder", folder.path]);
    expect(source).toBe(folder.env["RELAY_DATABASE"]);
    expect(tables).toMatchObject({
      ...{ applications: { opened: 1, damaged: 0 }, connections: { opened: 4, damaged: 0 } },
      ...{ oauth_clients: NONE, tickets: NONE, webhook_endpoints: NONE, call_captures: NONE },
    });
    expect(hashes(folder)).toEqual(before);
    const { stdout } = await folder.run(["db", "drill"]);
    expect(stdout).toMatch(/^connections +4 +0$/m);
    expect(stdout).not.toContain("CANARY");
  });

  it("restores a backup that is named, with the copy of the key file that is named", async () => {
    const { folder } = await filled();
    await folder.json(["db", "backup", "monday.db"]);
    copyFileSync(join(folder.path, "relay.key"), join(folder.path, "safe.key"));
    const env = { RELAY_DATABASE: "sqlite:gone.db", RELAY_KEY_FILE: "gone.key" };
    const args = ["db", "drill", "monday.db", "--key-file", "safe.key"];
    expect((await folder.json(args, { env })).tables.connections).toEqual({ opened: 4, damaged: 0 });
    expect(readdirSync(folder.path)).not.toContain("gone.db");
  });

  it("fails where a value is damaged, and says how many", async () => {
    const { folder } = await filled();
    const db = new Database(join(folder.path, "relay.db"));
    db.exec("UPDATE connections SET refresh_token = zeroblob(64) WHERE user_id = 'bob'").close();
    const { exitCode, stdout, stderr } = await folder.run(["db", "drill", "--json"]);
    expect([exitCode, JSON.parse(stdout).tables.connections]).toEqual([1, { opened: 3, damaged: 1 }]);
    expect(stderr).toMatch(/^1 values cannot be opened/);
  });

  it("fails where a value stands in another user's row", async () => {
    const { folder } = await filled();
    const db = new Database(join(folder.path, "relay.db"));
    const other = "(SELECT access_token FROM connections WHERE user_id = 'ada')";
    db.exec(`UPDATE connections SET access_token = ${other} WHERE user_id = 'bob'`).close();
    const { exitCode } = await folder.run(["db", "drill"]);
    expect(exitCode).toBe(1);
  });

  it.each([
    [
      "of another store",
      `k9:${Buffer.alloc(32, 7).toString("base64")}\n`,
      /is missing from the key file|is not the key/,
    ],
    ["that is missing", undefined, /does not exist/],
  ])("fails with a key file %s", async (_, text, problem) => {
    const { folder } = await filled();
    if (text !== undefined) writeFileSync(join(folder.path, "other.key"), text, { mode: 0o600 });
    const { exitCode, stdout, stderr } = await folder.run(["db", "drill", "--key-file", "other.key"]);
    expect([exitCode, stdout]).toEqual([2, ""]);
    expect(stderr).toMatch(problem);
  });

  it("says what the system refuses, and where", async () => {
    const { folder } = await filled();
    const { exitCode, stderr } = await folder.run(["db", "drill", "--folder", "nowhere"]);
    expect([exitCode, stderr]).toEqual([1, expect.stringMatching(/^ENOENT: no such file or directory.*nowhere/)]);
  });

  it("leaves no copy when it is told to stop", async () => {
    const { folder } = await filled();
    const pipe = join(folder.path, "keys.pipe");
    execFileSync("mkfifo", ["-m", "600", pipe]);
    const before = readdirSync(folder.path);
    const child = folder.start(["db", "drill", "--folder", folder.path, "--key-file", pipe]);
    // Open when the drill reads its keys, with the copy made.
    const keys = await open(pipe, "w");
    expect(readdirSync(folder.path).filter((name) => name.startsWith("relay-drill-"))).toHaveLength(1);
    child.kill("SIGTERM");
    await keys.writeFile(readFileSync(join(folder.path, "relay.key")));
    await keys.close();
    await once(child, "close");
    expect(readdirSync(folder.path)).toEqual(before);
  });

  const DRILL = (path: string) => ["db", "drill", "--folder", path];
  const BACKUP = () => ["db", "backup", "copy.db"];
  it.each(
    thin(
      [
        ["db drill", "SIGINT", 1, DRILL],
        ["db drill", "SIGTERM", 0, DRILL],
        ["db backup", "SIGINT", 1, BACKUP],
        ["db backup", "SIGTERM", 0, BACKUP],
      ],
      3,
    ),
  )(
    "%s ends for %s when its copy has %i bytes or more, and leaves nothing of it but what is another's",
    async (_, signal, bytes, argsIn) => {
      const { folder } = await filled();
      const db = new Database(join(folder.path, "relay.db"));
      const filler = db.prepare("INSERT INTO key_checks (key_id, sealed, created_at) VALUES (?, zeroblob(?), 0)");
      /** But for what SQLite keeps beside a database that was open when a process ended. */
      const names = () => readdirSync(folder.path).filter((name) => !/^relay\.db-(?:shm|wal)$/.test(name));
      // Of another copy to the same file that is under way.
      const another = "copy.db.0123456789ab.draft";
      writeFileSync(join(folder.path, another), "");
      const before = names();
      const hasBegun = () => {
        const files = readdirSync(folder.path, { recursive: true }).map(String);
        const draft = files.find((name) => name.endsWith(".draft") && name !== another);
        const found = draft && statSync(join(folder.path, draft), { throwIfNoEntry: false });
        return found ? found.size >= bytes : false;
      };
      // Where the copy was made sooner than this process looked, the next one is larger.
      for (let tries = 1; tries <= MOST_FILLERS; tries++) {
        filler.run(`filler ${tries}`, FILLER_BYTES);
        const child = folder.start(argsIn(folder.path));
        const ended = once(child, "close");
        while (!hasBegun() && child.exitCode === null) await nextTurn();
        child.kill(signal);
        const [exitCode, endedBy] = await ended;
        if (exitCode !== 0) return expect([exitCode, endedBy, names()]).toEqual([null, signal, before]);
        // A whole copy takes the drafts of others to its name away.
        rmSync(join(folder.path, "copy.db"), { force: true });
        writeFileSync(join(folder.path, another), "");
      }
      expect.fail("every copy was made before the signal");
    },
  );

  it("fails where nothing was restored", async () => {
    const { folder } = await filled();
    writeFileSync(join(folder.path, "empty.db"), "");
    const { exitCode, stdout, stderr } = await folder.run(["db", "drill", "empty.db"]);
    expect([exitCode, stdout]).toEqual([1, ""]);
    expect(stderr).toContain("The restored database has no store of this version");
  });
});

describe.skipIf(POSTGRES_URL === undefined)("relay db drill on PostgreSQL", () => {
  it("tells a dump of an older version from one that is empty, and migrates neither", async () => {
    const { folder } = await filled();
    const database = await createTestDatabase();
    onTestFinished(() => database.remove());
    const drill = () => folder.run(["db", "drill"], { env: { RELAY_DATABASE: database.url } });
    expect(await drill()).toMatchObject({
      exitCode: 1,
      stdout: "",
      stderr: expect.stringContaining("The restored database has no store of this version"),
    });
    const pool = createPool(parseDatabaseLocation(database.url) as PostgresLocation, {
      maxConnections: 1,
      timeoutMs: 5000,
    });
    await migratePostgres(createSession(pool), "test", POSTGRES_MIGRATIONS.slice(0, 1)).finally(() => pool.end());
    const older = await drill();
    expect(older).toMatchObject({ exitCode: 1, stdout: "" });
    expect(older.stderr).toMatch(
      /^postgres:\/\/127\.0\.0\.1:\d+\/postgres has the schema of an older version; run 'relay db migrate' on it first\.\n$/,
    );
    expect(await database.query("SELECT version FROM relay_schema")).toEqual([{ version: "1" }]);
  });
});
