import { generateKeyPairSync } from "node:crypto";
import { once } from "node:events";
import { readFileSync, statSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { describe, expect, it, onTestFinished } from "vitest";
import { transferBinding } from "../../src/admin/export-connections.js";
import { loadKeyring } from "../../src/sealing/keyring.js";
import { createSealer } from "../../src/sealing/seal.js";
import { thin } from "../support/long.js";
import { createTestDatabase, POSTGRES_URL } from "../support/postgres.js";
import { type CliFolder, createFolder, finished } from "./run-relay.js";

const APP = "a-public-key-of-the-shop-in-both-relays";
const DEFINITIONS = [
  { name: "mailer", kind: "api_key", apiOrigins: ["https://api.mailer.example.com"] },
  {
    ...{ name: "desk", kind: "basic", apiOrigins: ["https://{team}.desk.example.com"] },
    connectionValues: [{ name: "team" }],
  },
  {
    ...{ name: "machine", kind: "client_credentials", apiOrigins: ["https://api.machine.example.com"] },
    oauth2: { tokenEndpoint: "https://api.machine.example.com/token" },
  },
  {
    ...{ name: "crm", apiOrigins: ["https://{instance}.crm.example.com"] },
    connectionValues: [{ name: "instance", tokenMember: "instance" }],
  },
];
const { privateKey } = generateKeyPairSync("rsa", { modulusLength: 2048 });
const PEM = privateKey.export({ type: "pkcs8", format: "pem" }).toString();
const OAUTH = { application: APP, user: "ada", provider: "github", token: { access_token: "CANARY-of-ada" } };
const GOOD = [
  { ...OAUTH, token: { ...OAUTH.token, refresh_token: "CANARY-refresh", expires_in: 3600, scope: "a b" } },
  { user: "é\u0000b", provider: "crm", token: { access_token: "CANARY-crm", instance: "acme", id_token: "CANARY.id" } },
  { user: "ada", provider: "mailer", secrets: { api_key: "CANARY-key" } },
  {
    user: "ada",
    provider: "desk",
    secrets: { password: "CANARY-pass" },
    parameters: { username: "ada", team: "Acme" },
  },
  { user: "own", provider: "machine", secrets: { client_secret: "CANARY-secret" }, parameters: { client_id: "own" } },
  { user: "all", provider: "machine" },
  {
    ...{ user: "signer", provider: "servicenowjwt", secrets: { signing_key: PEM, client_secret: "CANARY-secret" } },
    parameters: { instance: "acme", client_id: "integration", user_identifier: "ada@example.com" },
  },
];
const linesOf = (lines: readonly object[]) => lines.map((line) => `${JSON.stringify(line)}\n`).join("");
const report = (stored: number, kept: number, refused: number) => ({ stored, kept, refused });

type Relay = Pick<CliFolder, "run" | "json" | "path" | "start">;

/** A relay with the application and a client of it. */
async function createRelay(database: "SQLite" | "PostgreSQL"): Promise<Relay> {
  const folder = createFolder();
  const files = DEFINITIONS.map((definition) => {
    const file = join(folder.path, `${definition.name}.json`);
    writeFileSync(file, JSON.stringify(definition));
    return file;
  });
  const env: Record<string, string> = { RELAY_PROVIDERS: files.join(":") };
  if (database === "PostgreSQL") {
    const made = await createTestDatabase();
    onTestFinished(() => made.remove());
    env["RELAY_DATABASE"] = made.url;
  }
  const relay: Relay = {
    path: folder.path,
    run: (args, options) => folder.run(args, { ...options, env: { ...env, ...options?.env } }),
    json: (args, options) => folder.json(args, { ...options, env: { ...env, ...options?.env } }),
    start: (args) => folder.start(args, env),
  };
  await relay.json(["app", "create", "Shop", "--public-key", APP]);
  const client = JSON.stringify({ client_id: "of the app", client_secret: "CANARY-of-the-app" });
  await relay.json(["client", "put", "--app", APP, "--provider", "machine"], { input: client });
  return relay;
}

const importLines = (relay: Relay, input: string | Uint8Array, ...args: string[]) =>
  relay.run(["connection", "import", "--app", APP, ...args], { input });

/** Counts that standard output ends with, and the refusals before them. */
async function importJson(relay: Relay, input: string, ...args: string[]) {
  const { stdout, stderr } = await importLines(relay, input, "--json", ...args);
  expect(stdout + stderr).not.toContain("CANARY");
  const lines = stdout
    .trim()
    .split("\n")
    .map((line) => JSON.parse(line));
  return { counts: lines.at(-1), refusals: lines.slice(0, -1) };
}

async function exported(relay: Relay, key: string, ...args: string[]): Promise<Record<string, string>[]> {
  const { exitCode, stdout, stderr } = await relay.run(["connection", "export", "--sealed", key, ...args]);
  expect([exitCode, stderr]).toEqual([0, ""]);
  expect(stdout).not.toContain("CANARY");
  return stdout
    .split("\n")
    .filter(Boolean)
    .map((line) => JSON.parse(line));
}

/** What a line has sealed. */
async function opened(
  { application = "", user = "", provider = "", sealed = "" }: Record<string, string>,
  key: string,
) {
  const sealer = createSealer(await loadKeyring(key, { mustExist: true }));
  const binding = transferBinding({ publicKey: application, userId: user, provider });
  return JSON.parse(sealer.open(Buffer.from(sealed, "base64url"), binding).toString());
}

const newKey = async (relay: Relay) => {
  const file = join(relay.path, "transfer.key");
  await relay.json(["key", "create", file]);
  return file;
};

describe.each(thin(["SQLite", ...(POSTGRES_URL === undefined ? [] : (["PostgreSQL"] as const))]))(
  "relay connection import into %s",
  (database) => {
    it("stores connections of each kind, and says nothing beside the counts where no person looks", async () => {
      const relay = await createRelay(database);
      expect(await importLines(relay, `\ufeff${linesOf(GOOD)}\r\n\n`)).toEqual({
        exitCode: 0,
        stdout: "7 stored, 0 existing ones kept, 0 refused.\n",
        stderr: "",
      });
      const shown = async (user: string, provider: string) =>
        relay.json(["connection", "show", "--app", APP, "--user", user, "--provider", provider]);
      expect(await shown("ada", "github")).toMatchObject({ state: "ACTIVE", scope: "a b", hasRefreshToken: true });
      expect(await shown("ada", "desk")).toMatchObject({ originParameters: { username: "ada", team: "acme" } });
      expect(await shown("own", "machine")).toMatchObject({ originParameters: { client_id: "own" } });
      expect(await shown("all", "machine")).toMatchObject({ originParameters: { client_id: "of the app" } });
      const audit: { method: string; resource: string }[] = await relay.json(["audit", "list"]);
      expect(audit.filter(({ method }) => method.endsWith("PutConnection"))).toHaveLength(7);
    });

    it("keeps what is there already unless a line is newer, so that it can be run again", async () => {
      const relay = await createRelay(database);
      const at = (obtained_at: string, token: string) =>
        linesOf([{ ...OAUTH, token: { access_token: token }, obtained_at }]);
      const key = await newKey(relay);
      const stored = async () =>
        (await opened((await exported(relay, key, "--provider", "github"))[0] ?? {}, key)).token;
      expect((await importJson(relay, linesOf(GOOD))).counts).toEqual(report(7, 0, 0));
      expect((await importJson(relay, linesOf(GOOD))).counts).toEqual(report(0, 7, 0));
      expect((await importJson(relay, at("2020-01-01T00:00:00Z", "CANARY-old"))).counts).toEqual(report(0, 1, 0));
      expect(await stored()).toMatchObject({ access_token: "CANARY-of-ada", refresh_token: "CANARY-refresh" });
      const later = new Date(Date.now() + 1).toISOString();
      expect((await importJson(relay, at(later, "CANARY-new"))).counts).toEqual(report(1, 0, 0));
      expect(await stored()).toMatchObject({ access_token: "CANARY-new" });
      expect((await importJson(relay, at(later, "CANARY-again"))).counts).toEqual(report(0, 1, 0));
      expect(await stored()).toMatchObject({ access_token: "CANARY-new" });
    });

    it("moves every connection to another relay with all that it has", async () => {
      const [source, target] = [await createRelay(database), await createRelay("SQLite")];
      await importJson(source, linesOf(GOOD));
      const key = await newKey(target);
      const lines = await exported(source, key);
      expect(lines.map(({ user, provider }) => `${provider} ${user}`).sort()).toEqual(
        GOOD.map(({ user, provider }) => `${provider} ${user}`).sort(),
      );
      for (const line of lines) expect(Object.keys(line)).toEqual(["application", "user", "provider", "sealed"]);
      expect((await importJson(target, linesOf(lines), "--key", key)).counts).toEqual(report(7, 0, 0));
      const parts = async (relay: Relay) =>
        Promise.all(
          (await exported(relay, key)).map(async (line) => [line["user"], line["provider"], await opened(line, key)]),
        );
      const [there, here] = [await parts(source), await parts(target)];
      const timeless = (list: typeof there) =>
        list.map(([user, provider, { obtained_at: _, ...rest }]) => [user, provider, rest]);
      expect(timeless(here)).toEqual(timeless(there));
      expect(timeless(here)).toContainEqual([
        "ada",
        "github",
        {
          parameters: {},
          token: {
            ...{ access_token: "CANARY-of-ada", refresh_token: "CANARY-refresh", token_type: "Bearer" },
            ...{ scope: "a b", expires_in: 3600 },
          },
        },
      ]);
      const list = async (relay: Relay): Promise<{ provider: string; expiresAt: string }[]> =>
        (await relay.json(["connection", "list", "--app", APP])).filter(
          ({ provider = "" }) => !["machine", "servicenowjwt"].includes(provider),
        );
      expect((await list(target)).map(({ expiresAt }) => expiresAt)).toEqual(
        (await list(source)).map(({ expiresAt }) => expiresAt),
      );
      expect((await importJson(target, linesOf(lines), "--key", key)).counts).toEqual(report(0, 7, 0));
    });
  },
);

describe("relay connection import", () => {
  const long = "x".repeat(300 * 1024);
  const BAD: ReadonlyArray<readonly [line: string | object, reason: string]> = [
    ["not json CANARY", "the line is not a JSON object"],
    [JSON.stringify(OAUTH).replace("{", '{"user":"CANARY",'), "the line is not a JSON object, or has a member twice"],
    ["[1]", "the line is not a JSON object"],
    [{ ...OAUTH, "CANARY-member": 1 }, "the line has a member other than application, user,"],
    [{ ...OAUTH, application: "CANARY-nobody" }, "application: no application has this public key"],
    [{ ...OAUTH, application: 5 }, "application is not a string"],
    [{ ...OAUTH, provider: "CANARY" }, "provider: no provider has this name"],
    [{ ...OAUTH, provider: undefined }, "provider is missing"],
    [{ ...OAUTH, user: "" }, "user is missing"],
    [{ ...OAUTH, user: "u".repeat(257) }, "user is longer than 256 characters"],
    [{ ...OAUTH, user: "\ud800" }, "user is not well-formed Unicode"],
    [{ ...OAUTH, token: undefined }, "token is missing"],
    [{ ...OAUTH, token: "CANARY" }, "token is missing, or not a token response"],
    [
      { ...OAUTH, token: { access_token: "CANARY\r\nx" } },
      "token: The token response's access_token must be printable",
    ],
    [{ ...OAUTH, token: { error: "CANARY" } }, "is missing: this is an error response"],
    [{ ...OAUTH, secrets: { api_key: "CANARY" } }, "secrets: github needs token"],
    [{ ...OAUTH, parameters: { "CANARY-name": "a" } }, "parameters: github takes no parameters"],
    [{ ...OAUTH, parameters: "CANARY" }, "parameters is not a JSON object of strings"],
    [{ ...OAUTH, obtained_at: "CANARY" }, "obtained_at is not a time"],
    [{ ...OAUTH, obtained_at: 17 }, "obtained_at is not a time"],
    [{ ...OAUTH, obtained_at: "2026-01-31" }, "obtained_at is not a time"],
    [{ ...OAUTH, obtained_at: "2026-02-30T12:00:00Z" }, "obtained_at is not a time"],
    [{ ...OAUTH, sealed: "CANARY" }, "sealed cannot be combined with token"],
    [{ ...OAUTH, token: undefined, sealed: "CANARY" }, "sealed: it was altered"],
    [{ ...OAUTH, provider: "mailer" }, "token: mailer needs secrets"],
    [{ user: "a", provider: "mailer", secrets: { api_key: "CANARY" } }, "secrets.api_key: must be at least 8"],
    [{ user: "a", provider: "mailer", secrets: { "CANARY-name": "x" } }, "secrets: mailer takes api_key"],
    [{ user: "a", provider: "mailer", secrets: { api_key: 1 } }, "secrets is not a JSON object of strings"],
    [{ user: "a", provider: "desk", secrets: { password: "CANARY-pass" } }, "parameters.team: is missing"],
    [
      {
        ...{ user: "a", provider: "desk", secrets: { password: "CANARY-pass" } },
        parameters: { username: "a", team: "evil.com/" },
      },
      "parameters.team: does not form a valid host",
    ],
    [{ user: "a", provider: "machine", parameters: { client_id: "a" } }, "client_secret is missing"],
    [long, "is longer than 262144 bytes"],
    [Buffer.from([0x7b, 0xff, 0x7d]), "is not UTF-8"],
  ];

  it("refuses each line that is wrong by its number, says why and nothing of it, and stores the others", async () => {
    const relay = await createRelay("SQLite");
    const pieces = BAD.flatMap(([bad, reason], at) => {
      const wrong = Buffer.isBuffer(bad) || typeof bad === "string" ? bad : JSON.stringify(bad);
      return [linesOf([{ ...OAUTH, user: `good ${at} ${reason}` }]), wrong, "\n"].map((piece) => Buffer.from(piece));
    });
    const { exitCode, stdout, stderr } = await importLines(relay, Buffer.concat(pieces));
    const told = stdout.trim().split("\n");
    expect(told.pop()).toBe(`${BAD.length} stored, 0 existing ones kept, ${BAD.length} refused.`);
    expect([stderr, exitCode, stdout.includes("CANARY")]).toEqual(["", 1, false]);
    for (const [at, [, reason]] of BAD.entries()) {
      expect(told[at]).toMatch(new RegExp(`^line ${2 * at + 2}: `));
      expect(told[at]).toContain(reason);
    }
    const listed: { user: string }[] = await relay.json(["connection", "list", "--app", APP]);
    expect(listed).toHaveLength(BAD.length);
  });

  it("refuses a second line for one connection, whatever it holds, and says which was first", async () => {
    const relay = await createRelay("SQLite");
    const lines = [
      OAUTH,
      { ...OAUTH, user: "bob" },
      { ...OAUTH, provider: "github", token: { access_token: "CANARY-2" } },
    ];
    const { counts, refusals } = await importJson(relay, linesOf(lines));
    expect(refusals).toEqual([{ line: 3, reason: "repeats the connection of line 1" }]);
    expect(counts).toEqual(report(2, 0, 1));
  });

  it("goes on where it was killed", async () => {
    const relay = await createRelay("SQLite");
    const lines = Array.from({ length: 450 }, (_, at) => ({ ...OAUTH, user: `user-${at}` }));
    const child = relay.start(["connection", "import"]);
    child.stdin.write(linesOf(lines.slice(0, 250)));
    const count = async () => (await relay.json(["connection", "list", "--app", APP])).length;
    await expect.poll(count, { timeout: 20_000 }).toBe(200);
    child.kill("SIGKILL");
    await finished(child);
    expect((await importJson(relay, linesOf(lines))).counts).toEqual(report(250, 200, 0));
    expect(await count()).toBe(450);
  });

  it("goes on to its end when the reader of what it refuses is gone", async () => {
    const relay = await createRelay("SQLite");
    const child = relay.start(["connection", "import"]);
    child.stdout.destroy();
    const ended = once(child, "close");
    child.stdin.end(linesOf([...Array.from({ length: 2000 }, () => ({ wrong: 1 })), OAUTH]));
    expect(await ended).toEqual([1, null]);
    expect(await relay.json(["connection", "list", "--app", APP])).toMatchObject([{ user: "ada" }]);
  });

  it("tells a person at a terminal how far it has come, on one line", async () => {
    const relay = await createRelay("SQLite");
    const { stderr } = await relay.run(["connection", "import"], { input: linesOf([OAUTH]), isTerminal: true });
    expect(stderr).toBe("\r1 lines\u001b[K\r\u001b[K");
  });

  it("refuses an application of --app that there is none of, before it reads", async () => {
    const relay = await createRelay("SQLite");
    const { exitCode, stdout, stderr } = await relay.run(["connection", "import", "--app", "x"], { input: "CANARY" });
    expect([exitCode, stdout, stderr.includes("no application")]).toEqual([1, "", true]);
  });
});

describe("a line of relay connection export", () => {
  it("opens for its own connection alone, with the right key, as it was written", async () => {
    const relay = await createRelay("SQLite");
    const other = await createRelay("SQLite");
    await other.json(["app", "create", "Other", "--public-key", "another-application-of-the-target"]);
    await importJson(relay, linesOf([OAUTH, { user: "eve", provider: "mailer", secrets: { api_key: "CANARY-key" } }]));
    const key = await newKey(other);
    const [line = {}, eve = {}] = await exported(relay, key);
    const at = 60;
    const { sealed = "" } = line;
    const flipped = sealed.slice(0, at) + (sealed[at] === "A" ? "B" : "A") + sealed.slice(at + 1);
    const altered = "sealed: it was altered, or belongs to another connection";
    const wrong = [
      { ...line, sealed: flipped },
      { ...line, sealed: sealed.slice(0, -8) },
      { ...line, user: "eve" },
      { ...line, provider: "gitlab" },
      { ...line, application: "another-application-of-the-target" },
      { ...line, sealed: eve["sealed"] },
      { ...line, parameters: { a: "b" } },
    ];
    const { refusals } = await importJson(other, linesOf(wrong), "--key", key);
    expect(refusals.map(({ reason }) => reason)).toEqual([
      ...Array(6).fill(altered),
      "sealed cannot be combined with token, secrets, parameters, obtained_at",
    ]);
    const elsewhere = await importJson(other, linesOf([line]));
    expect(elsewhere.refusals).toEqual([
      { line: 1, reason: "sealed: the key is not in the key file; give its file with --key" },
    ]);
    expect((await importJson(other, linesOf([line, eve]), "--key", key)).counts).toEqual(report(2, 0, 0));
  });

  it("may be sealed with a key of the target's own key file", async () => {
    const [source, target] = [await createRelay("SQLite"), await createRelay("SQLite")];
    await importJson(source, linesOf([OAUTH]));
    const lines = await exported(source, join(target.path, "relay.key"));
    expect((await importJson(target, linesOf(lines))).counts).toEqual(report(1, 0, 0));
  });

  it("is written for what was asked for, and leaves out what has ended", async () => {
    const relay = await createRelay("SQLite");
    await importJson(relay, linesOf(GOOD));
    const key = await newKey(relay);
    const named = async (...args: string[]) =>
      (await exported(relay, key, ...args)).map(({ user, provider }) => `${user} ${provider}`);
    expect(await named("--app", APP, "--user", "ada")).toEqual(["ada desk", "ada github", "ada mailer"]);
    expect(await named("--provider", "mailer")).toEqual(["ada mailer"]);
    const noUser = await relay.run(["connection", "export", "--sealed", key, "--user", "ada"]);
    expect(noUser).toMatchObject({ exitCode: 2, stdout: "", stderr: expect.stringContaining("--user needs --app") });
    const env = { RELAY_PROVIDERS: "" };
    const left = await relay.run(["connection", "export", "--sealed", key], { env });
    expect(left.stdout.split("\n").filter(Boolean)).toHaveLength(2);
    expect(left.stderr).toContain("Left out because they have ended, match no definition or cannot be opened: 5.");
  });

  it("needs a key file that is there, and one is made for its owner alone, once", async () => {
    const relay = await createRelay("SQLite");
    const missing = await relay.run(["connection", "export", "--sealed", join(relay.path, "none.key")]);
    expect([missing.exitCode, missing.stdout]).toEqual([2, ""]);
    expect((await relay.run(["connection", "export"])).exitCode).toBe(2);
    const key = await newKey(relay);
    const text = readFileSync(key, "utf8");
    expect(statSync(key).mode & 0o777).toBe(0o600);
    const again = await relay.run(["key", "create", key]);
    expect([again.exitCode, readFileSync(key, "utf8")]).toEqual([1, text]);
    await relay.run(["connection", "export", "--sealed", key]);
    const audit: { method: string }[] = await relay.json(["audit", "list"]);
    expect(audit.map(({ method }) => method)).toContain("relay connection export");
  });
});
