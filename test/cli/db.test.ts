import { existsSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import Database from "better-sqlite3";
import { describe, expect, it, onTestFinished } from "vitest";
import { thin } from "../support/long.js";
import { createTestDatabase, POSTGRES_URL, type TestDatabase } from "../support/postgres.js";
import { type CliFolder, createFolder, finished, prepareOnce } from "./run-relay.js";

const USER = "É\u{1F600} 1";

async function createDatabase(): Promise<TestDatabase> {
  const database = await createTestDatabase();
  onTestFinished(() => database.remove());
  return database;
}

/** A store in SQLite with one of everything that is copied. */
const filledFolder = prepareOnce(async (folder) => {
  const { publicKey } = await folder.json(["app", "create", "Shop É", "--allow-origin", "https://a.example"]);
  const at = ["--app", publicKey, "--provider", "github"];
  const client = JSON.stringify({ client_id: "id", client_secret: "canary-secret" });
  await folder.json(["client", "put", ...at], { input: client });
  await folder.json(["webhook", "put", "--app", publicKey, "https://app.example/hook"]);
  const tokens = JSON.stringify({ access_token: "canary-access", refresh_token: "canary-refresh", scope: "a b" });
  await folder.json(["connection", "put", ...at, "--user", USER], { input: tokens });
  return { publicKey: publicKey as string };
});

const source = (folder: CliFolder) => ["--from", folder.env["RELAY_DATABASE"] ?? ""];

describe.skipIf(POSTGRES_URL === undefined)("relay db copy", () => {
  it("copies everything, and the same key file opens it", async () => {
    const { folder, publicKey } = await filledFolder();
    const sqlite = new Database(join(folder.path, "relay.db"));
    onTestFinished(() => void sqlite.close());
    sqlite.exec(`INSERT INTO ended_sessions VALUES ('signed-out', 8000000000000);
      INSERT INTO webhook_deliveries SELECT 7, 'delivered', id, 'connection.created', '${USER}', 'github', 'DELIVERED', 1,
        204, 1, 2 FROM applications`);
    const database = await createDatabase();
    const env = { RELAY_DATABASE: database.url };
    expect(await folder.json(["db", "copy", ...source(folder)], { env })).toEqual({
      applications: 1,
      audit_records: 4,
      oauth_clients: 1,
      connections: 1,
      webhook_endpoints: 1,
      webhook_events: 1,
      webhook_deliveries: 1,
      key_checks: 1,
      ended_sessions: 1,
    });
    for (const command of [
      ["app", "list"],
      ["client", "list", "--app", publicKey],
      ["connection", "show", "--app", publicKey, "--user", USER, "--provider", "github"],
      ["webhook", "show", "--app", publicKey],
      ["webhook", "deliveries", "--app", publicKey],
    ]) {
      expect(await folder.json(command, { env })).toEqual(await folder.json(command));
    }
    const tokens = "SELECT access_token, refresh_token FROM connections";
    expect(await database.query(tokens)).toEqual(sqlite.prepare(tokens).all());
    expect(await database.query("SELECT origin FROM application_origins")).toEqual([{ origin: "https://a.example" }]);
    expect(await database.query("SELECT id FROM ended_sessions")).toEqual([{ id: "signed-out" }]);
    expect(await folder.json(["key", "rotate"], { env })).toMatchObject({ resealed: 4, left: 0 });
  });

  it("copies more rows than it sends at a time, in their order", async () => {
    const { folder } = await filledFolder();
    const sqlite = new Database(join(folder.path, "relay.db"));
    onTestFinished(() => void sqlite.close());
    sqlite.exec(`WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 999)
      INSERT INTO webhook_events (id, application_id, payload, next_try_at, created_at)
      SELECT 'e' || i, application_id, payload, next_try_at, created_at FROM webhook_events, n`);
    const database = await createDatabase();
    const counts = await folder.json(["db", "copy", ...source(folder), "--to", database.url]);
    expect(counts.webhook_events).toBe(1000);
    const ids = sqlite.prepare("SELECT id FROM webhook_events ORDER BY rowid").all();
    expect(await database.query("SELECT id FROM webhook_events ORDER BY place")).toEqual(ids);
  });

  it("refuses a database that holds something, and changes nothing", async () => {
    const { folder } = await filledFolder();
    const database = await createDatabase();
    const copy = () => folder.run(["db", "copy", ...source(folder), "--to", database.url]);
    expect((await copy()).exitCode).toBe(0);
    const again = await copy();
    expect(again).toMatchObject({ exitCode: 1, stdout: "" });
    expect(again.stderr).toMatch(/already contains a store with data/);
    expect(await database.query("SELECT count(*)::int AS count FROM connections")).toEqual([{ count: 1 }]);
  });

  it("makes no source that is missing, and shows no password of a target that is wrong", async () => {
    const folder = createFolder();
    const wrong = POSTGRES_URL?.replace(/:[^:@]*@/, ":CANARY_wrong@") ?? "";
    const missing = await folder.run(["db", "copy", ...source(folder), "--to", wrong]);
    expect(missing).toMatchObject({ exitCode: 2, stdout: "" });
    expect(existsSync(join(folder.path, "relay.db"))).toBe(false);
    writeFileSync(join(folder.path, "relay.db"), "");
    for (const to of [wrong, "postgres://u:CANARY_wrong@h/d?sslmode=prefer", "sqlite:x"]) {
      const refused = await folder.run(["db", "copy", ...source(folder), "--to", to]);
      expect(refused.exitCode).toBeGreaterThan(0);
      expect(refused.stdout + refused.stderr).not.toContain("CANARY");
    }
  });
});

describe.skipIf(POSTGRES_URL === undefined)("relay db migrate", () => {
  it("makes the schema, says so without the password, and needs no key", async () => {
    const folder = createFolder();
    const database = await createDatabase();
    const env = { RELAY_DATABASE: database.url };
    const result = await folder.run(["db", "migrate"], { env });
    expect(result).toMatchObject({ exitCode: 0, stderr: "" });
    expect(result.stdout).toMatch(/^postgres:\/\/127\.0\.0\.1:\d+\/postgres is up to date\n$/);
    expect(await database.query("SELECT id FROM applications")).toEqual([]);
    expect(existsSync(join(folder.path, "relay.key"))).toBe(false);
    // The first start makes the key file.
    expect(await folder.run(["config", "check"], { env })).toMatchObject({ exitCode: 0, stderr: "" });
  });
});

describe.skipIf(POSTGRES_URL === undefined)("relay config check on PostgreSQL", () => {
  it("names the schema that is not there, and the privilege to create tables that the user lacks", async () => {
    const database = await createDatabase();
    const [{ name } = { name: "" }] = await database.query<{ name: string }>("SELECT current_schema() AS name");
    const check = async (url: string) => {
      const { exitCode, stderr } = await createFolder().run(["config", "check"], { env: { RELAY_DATABASE: url } });
      return { exitCode, stderr };
    };
    expect(await check(database.url)).toEqual({ exitCode: 0, stderr: "" });
    expect(await check(database.url.replace(name, "no_such_schema"))).toEqual({
      exitCode: 2,
      stderr: expect.stringContaining("has no such schema; create it"),
    });
    const role = `role_${name}`;
    await database.query(`CREATE ROLE ${role} LOGIN PASSWORD 'canary'; GRANT USAGE ON SCHEMA ${name} TO ${role}`);
    onTestFinished(async () => {
      await database.query(`DROP OWNED BY ${role}; DROP ROLE ${role}`);
    });
    const forRole = database.url.replace(/\/\/[^@]*@/, `//${role}:canary@`);
    const tooFew = { exitCode: 2, stderr: expect.stringContaining("too few privileges (42501)") };
    expect(await check(forRole)).toEqual(tooFew);
    await createFolder().run(["db", "migrate"], { env: { RELAY_DATABASE: database.url } });
    await database.query(`GRANT SELECT ON relay_schema TO ${role}`);
    expect(await check(forRole)).toEqual(tooFew);
  });
});

describe.skipIf(POSTGRES_URL === undefined)("commands on PostgreSQL", () => {
  it("make no second key file beside a store that has one already", async () => {
    const database = await createDatabase();
    const env = { RELAY_DATABASE: database.url };
    await createFolder().json(["app", "create", "Shop"], { env });
    const other = createFolder();
    const result = await other.run(["app", "list"], { env });
    expect(result).toMatchObject({ exitCode: 2, stdout: "" });
    expect(result.stderr).toMatch(/relay\.key/);
    expect(existsSync(join(other.path, "relay.key"))).toBe(false);
  });

  it("say in production that there is no store yet", async () => {
    const database = await createDatabase();
    const env = { RELAY_DATABASE: database.url, NODE_ENV: "production" };
    const result = await createFolder().run(["app", "list"], { env });
    expect(result).toMatchObject({ exitCode: 2, stdout: "" });
    expect(result.stderr).toMatch(/^RELAY_DATABASE: postgres:\/\/127\.0\.0\.1:\d+\/postgres contains no store/);
  });
});

describe("a password in RELAY_DATABASE", () => {
  it.each(
    thin([
      ["config check", ["config", "check"], "postgres://user:CANARY_p@127.0.0.1:1/relay"],
      ["config check of a wrong one", ["config", "check"], "postgres://user:CANARY_p@127.0.0.1:1/relay?x=1"],
      ["a server that is not there", ["app", "list"], "postgres://user:CANARY_p@127.0.0.1:1/relay"],
      ["a start of the service", ["serve"], "postgres://user:CANARY_p@127.0.0.1:1/relay"],
    ]),
  )("is not shown by %s", async (_what, args, url) => {
    const folder = createFolder();
    const { stdout, stderr } = await finished(folder.start(args, { RELAY_DATABASE: url, RELAY_LOG_LEVEL: "trace" }));
    expect(stdout + stderr).not.toMatch(/CANARY|user:/);
    expect(stdout + stderr).toMatch(/postgres:\/\/127\.0\.0\.1:1\/relay|RELAY_DATABASE: expected/);
  });
});
