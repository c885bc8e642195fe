import { createHash, randomBytes } from "node:crypto";
import { chmodSync, existsSync, readdirSync, readFileSync, symlinkSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import Database from "better-sqlite3";
import { describe, expect, it } from "vitest";
import { createAuthority } from "../support/certificates.js";
import { IS_LONG } from "../support/long.js";
import { type CliFolder, createFolder, type Env, lineFrom, prepareOnce } from "./run-relay.js";

function spoilKeyFile(text: string) {
  return (folder: CliFolder): Env => {
    writeFileSync(join(folder.path, "relay.key"), text);
    return {};
  };
}

function spoilDatabase(sql: string) {
  return (folder: CliFolder): Env => {
    new Database(join(folder.path, "relay.db")).exec(sql).close();
    return {};
  };
}

const folderWithApp = prepareOnce(async (folder) => folder.json(["app", "create", "A"]));

/** Every file of the folder and what is in it. */
const hashes = ({ path }: CliFolder) =>
  readdirSync(path)
    .filter((name) => existsSync(join(path, name)))
    .map((name) => [
      name,
      createHash("sha256")
        .update(readFileSync(join(path, name)))
        .digest("hex"),
    ]);

describe("relay config check", () => {
  it("prints the values in effect and makes nothing", async () => {
    const folder = createFolder();
    const { ok, settings } = await folder.json(["config", "check"], { env: { RELAY_DEADLINE_MS: "1000" } });
    expect(ok).toBe(true);
    expect(settings).toMatchObject({ ...folder.env, RELAY_DEADLINE_MS: "1000", RELAY_LISTEN: "127.0.0.1:8080" });
    expect((await folder.run(["config", "check"])).stdout).toMatch(/^ok\n/);
    expect(existsSync(join(folder.path, "relay.db")) || existsSync(join(folder.path, "relay.key"))).toBe(false);
  });

  it("prints every problem at once", async () => {
    const env = { RELAY_LISTEN: "8080", RELAY_MAX_IN_FLIGHT: "0", RELAY_HTTP_STATUS: "200" };
    const result = await createFolder().run(["config", "check"], { env });
    expect(result).toMatchObject({ exitCode: 2, stdout: "" });
    expect(result.stderr.trimEnd().split("\n")).toHaveLength(3);
    const json = await createFolder().run(["config", "check", "--json"], { env });
    expect(json.exitCode).toBe(2);
    expect(JSON.parse(json.stdout)).toMatchObject({ ok: false, problems: { length: 3 } });
  });

  it("names problems of variables, files and database in one run, and makes nothing", async () => {
    const folder = createFolder();
    writeFileSync(join(folder.path, "bad.json"), '{"name":"bad","apiOrigins":[]}');
    writeFileSync(
      join(folder.path, "other.db"),
      "no database of SQLite's, but long enough to be taken for one".repeat(9),
    );
    const env = {
      RELAY_LISTEN: "8080",
      RELAY_DEADLINE_MS: "0",
      RELAY_DATABASE: "sqlite:other.db",
      RELAY_PROVIDERS: "bad.json",
      RELAY_TLS_CERT: "cert.pem",
      RELAY_TLS_KEY: "key.pem",
      RELAY_LISTN: "x",
      NODE_ENV: "production",
    };
    const before = readdirSync(folder.path);
    const { exitCode, stderr } = await folder.run(["config", "check"], { env });
    expect(exitCode).toBe(2);
    expect(stderr).toMatch(/^warning: RELAY_LISTN: /m);
    expect(stderr).toMatch(/^RELAY_LISTEN: expected/m);
    expect(stderr).toMatch(/^RELAY_DEADLINE_MS: expected/m);
    expect(stderr).toMatch(/^RELAY_TLS_CERT: cert\.pem cannot be read \(ENOENT\)$/m);
    expect(stderr).toMatch(/^RELAY_TLS_KEY: key\.pem/m);
    expect(stderr).toMatch(/^RELAY_KEY_FILE: .* does not exist/m);
    expect(stderr).toMatch(/^RELAY_DATABASE: .* is not a SQLite database/m);
    expect(stderr).toMatch(/^RELAY_PROVIDERS: bad\.json: apiOrigins: /m);
    expect(stderr.trimEnd().split("\n")).toHaveLength(8);
    expect(readdirSync(folder.path)).toEqual(before);
  });

  const STORES: ReadonlyArray<readonly [what: string, spoil: (folder: CliFolder) => Env, problem: RegExp]> = [
    ["a malformed key file", spoilKeyFile("no key\n"), /^RELAY_KEY_FILE: .* line 1: must be keyId:base64$/],
    [
      "a key file of another store",
      spoilKeyFile(`other:${randomBytes(32).toString("base64")}\n`),
      /^RELAY_DATABASE: The store holds values sealed under key "\w+", which is missing from the key file/,
    ],
    [
      "a key file below one that is no folder",
      () => ({ RELAY_KEY_FILE: "relay.db/relay.key" }),
      /^RELAY_KEY_FILE: Key file relay\.db\/relay\.key: cannot be read \(ENOTDIR\)/,
    ],
    ["a lost key file", () => ({ RELAY_KEY_FILE: "lost.key" }), /^RELAY_KEY_FILE: .* does not exist; restore it/],
    ["a database of a newer version", spoilDatabase("PRAGMA user_version = 99"), /^RELAY_DATABASE: .* version 99/],
    ["another program's database", spoilDatabase("PRAGMA user_version = 0"), /^RELAY_DATABASE: .* another program/],
    ["a folder as database", ({ path }) => ({ RELAY_DATABASE: `sqlite:${path}` }), /^RELAY_DATABASE: .*is not a file/],
    [
      "a database that could not be made",
      () => ({ RELAY_DATABASE: "sqlite:relay.key/new/relay.db" }),
      /^RELAY_DATABASE: relay\.key\/new\/relay\.db cannot be created; .*relay\.key is not a folder$/,
    ],
    [
      "a link to a database that is not mounted",
      ({ path }) => {
        symlinkSync(join(path, "unmounted", "relay.db"), join(path, "link.db"));
        return { RELAY_DATABASE: "sqlite:link.db" };
      },
      /^RELAY_DATABASE: link\.db is a link to a file that does not exist$/,
    ],
    [
      "a folder that does not exist",
      () => ({ RELAY_DATABASE: "sqlite:/nope/x.db" }),
      /^RELAY_DATABASE: the folder of \/nope\/x\.db does not exist; create or mount it$/,
    ],
    [
      "a folder that nobody can make",
      () => ({ RELAY_DATABASE: "sqlite:/proc/x/y.db" }),
      /^RELAY_DATABASE: the folder of \/proc\/x\/y\.db does not exist; create or mount it$/,
    ],
    [
      "a spool on a volume that is not mounted",
      () => ({ RELAY_SPOOL: "/nope/spool" }),
      /^RELAY_SPOOL: the folder of \/nope\/spool does not exist; create or mount it$/,
    ],
    [
      "a spool that is no folder",
      () => ({ RELAY_SPOOL: "relay.key" }),
      /^RELAY_SPOOL: .*relay\.key\/owner\.spool cannot be created; .*relay\.key is not a folder$/,
    ],
    [
      "a server that is not there",
      () => ({ RELAY_DATABASE: "postgres://relay:CANARY@127.0.0.1:1/relay" }),
      /^RELAY_DATABASE: Database postgres:\/\/127\.0\.0\.1:1\/relay: /,
    ],
  ];

  it.each(STORES)("finds %s, and changes nothing", async (_what, spoil, problem) => {
    const { folder } = await folderWithApp();
    const env = spoil(folder);
    const before = hashes(folder);
    const { exitCode, stderr } = await folder.run(["config", "check"], { env });
    expect(exitCode).toBe(2);
    expect(stderr.trimEnd()).toMatch(problem);
    expect(stderr).not.toMatch(/CANARY|\n./);
    expect(hashes(folder)).toEqual(before);
    if (!/link\.db|nope|proc/.test(problem.source)) return;
    // Where the check would have said ok, the start made a store elsewhere, or never ended.
    const started = await folder.run(["serve"], { env: { RELAY_LISTEN: "127.0.0.1:0", ...env } });
    expect(started).toMatchObject({ exitCode: 1, stdout: "" });
  });

  it("finds certificates that are none, that have ended, and keys of other ones", async () => {
    const folder = createFolder();
    const authority = createAuthority("config check");
    const [one, ended] = [authority.issue({}), authority.issue({ notAfter: new Date(Date.now() - 86_400_000) })];
    const file = (name: string, text: string) => {
      writeFileSync(join(folder.path, name), text, { mode: 0o600 });
      return name;
    };
    const [cert, key] = [file("cert.pem", one.cert), file("key.pem", one.key)];
    const check = async (RELAY_TLS_CERT: string, RELAY_TLS_KEY: string) =>
      (await folder.run(["config", "check"], { env: { RELAY_TLS_CERT, RELAY_TLS_KEY } })).stderr;
    expect(await check(cert, key)).toBe("");
    expect(await check(key, cert)).toMatch(
      /^RELAY_TLS_CERT: key\.pem cannot be used .*\nRELAY_TLS_KEY: cert\.pem .*\n$/,
    );
    expect(await check(cert, file("other.pem", authority.issue({}).key))).toBe(
      "RELAY_TLS_KEY: is not the key of RELAY_TLS_CERT\n",
    );
    expect(await check(file("ended.pem", ended.cert), file("ended-key.pem", ended.key))).toMatch(
      /^RELAY_TLS_CERT: expired/,
    );
  });

  it("warns of a setting that does not exist, and does not take the private key for one", async () => {
    const result = await createFolder().run(["config", "check"], {
      env: { RELAY_LISTN: "x", RELAY_PRIVATE_KEY: "secret-of-ours" },
    });
    expect(result.exitCode).toBe(0);
    expect(result.stderr).toMatch(/^warning: RELAY_LISTN: .*\n$/);
    expect(result.stdout + result.stderr).not.toContain("secret-of-ours");
  });

  it("says that an empty database file makes a new store, and finds damaged pages", async () => {
    const { folder } = await folderWithApp();
    writeFileSync(join(folder.path, "empty.db"), "");
    const empty = await folder.run(["config", "check"], { env: { RELAY_DATABASE: "sqlite:empty.db" } });
    expect(empty.stderr).toBe(
      "warning: RELAY_DATABASE: sqlite:empty.db is an empty file; the relay creates a new store in it when it starts\n",
    );
    const db = new Database(join(folder.path, "relay.db"));
    db.pragma("wal_checkpoint(TRUNCATE)");
    const page = db.prepare("SELECT pageno FROM dbstat WHERE name = 'webhook_events'").pluck().get() as number;
    const size = db.pragma("page_size", { simple: true }) as number;
    db.close();
    const text = readFileSync(join(folder.path, "relay.db"));
    writeFileSync(join(folder.path, "relay.db"), text.fill(0xa5, (page - 1) * size, page * size));
    const { exitCode, stderr } = await folder.run(["config", "check"]);
    expect([exitCode, stderr]).toEqual([
      2,
      expect.stringMatching(/^RELAY_DATABASE: .*relay\.db: is damaged; stop the relay/),
    ]);
  });
});

/** Each starts several processes, which take a second of two cores. */
if (IS_LONG) {
  describe("relay config check, and the start", () => {
    it("warns, as the start does, of proxies that are not used and of admin tokens in cleartext", async () => {
      const folder = createFolder();
      const env = { HTTPS_PROXY: "http://127.0.0.1:1", RELAY_ADMIN_LISTEN: "0.0.0.0:0", RELAY_LISTEN: "127.0.0.1:0" };
      const { exitCode, stderr } = await folder.run(["config", "check"], { env });
      expect(exitCode).toBe(0);
      expect(stderr).toMatch(
        /^warning: HTTPS_PROXY: is ignored: .*\nwarning: RELAY_ADMIN_LISTEN: can be reached without TLS.*\n$/,
      );
      const child = folder.start(["serve"], env);
      const warned = new Set<string>();
      await lineFrom(child, (line) => {
        const { setting, msg } = JSON.parse(line);
        if (setting !== undefined) warned.add(setting);
        return msg === "listening" || undefined;
      });
      expect([...warned]).toEqual(["HTTPS_PROXY", "RELAY_ADMIN_LISTEN"]);
      child.kill("SIGTERM");
    });

    it("warns of secrets that others can read, and in production they stop the start", async () => {
      const { folder } = await folderWithApp();
      const env = { RELAY_LISTEN: "127.0.0.1:0" };
      const stderrOf = async (mode: number, more: Env = {}, command = ["config", "check"]) => {
        chmodSync(join(folder.path, "relay.key"), mode);
        const { exitCode, stderr } = await folder.run(command, { env: { ...env, ...more } });
        return `${exitCode} ${stderr.replaceAll(folder.path, "")}`;
      };
      expect(await stderrOf(0o600)).toBe("0 ");
      expect(await stderrOf(0o640)).toBe(
        "0 warning: RELAY_KEY_FILE: /relay.key can be read by its group; chmod 0600 it\n",
      );
      const toAll = "RELAY_KEY_FILE: /relay.key can be read by every user of this machine; chmod 0600 it\n";
      expect(await stderrOf(0o644)).toBe(`0 warning: ${toAll}`);
      expect(await stderrOf(0o644, { NODE_ENV: "production" })).toBe(`2 ${toAll}`);
      expect(await stderrOf(0o644, { NODE_ENV: "production" }, ["serve"])).toBe(`2 ${toAll}`);
    });
  });
}
