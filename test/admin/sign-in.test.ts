import { chmodSync, readdirSync, readFileSync, statSync, utimesSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { Code } from "@connectrpc/connect";
import Database from "better-sqlite3";
import { request } from "undici";
import { afterAll, beforeAll, describe, expect, it, onTestFinished, vi } from "vitest";
import { createSession, parseTokenFile } from "../../src/admin/admit.js";
import { createSignInLink } from "../../src/admin/sign-in.js";
import { createCallers } from "../support/callers.js";
import { ADMIN_TOKENS, type Harness, startHarness } from "../support/harness.js";
import { createAdminClients } from "./admin-bed.js";

const MINUTE_MS = 60_000;
let harness: Harness;

beforeAll(async () => {
  harness = await startHarness();
});
afterAll(() => harness.close());

const tokenFile = (of = harness) => join(of.folder, "admin.tokens");
const spoolOf = (of = harness) => join(of.folder, "spool");
const tokensOf = (of = harness) => parseTokenFile(readFileSync(tokenFile(of), "utf8"), "");
const newLink = async (now = Date.now(), of = harness) =>
  (await createSignInLink(of.adminUrl, { folder: spoolOf(of), tokens: tokensOf(of) }, now)) ?? "";
const newSecret = async (now = Date.now(), of = harness) => (await newLink(now, of)).split("#sign-in=")[1] ?? "";

async function redeem(
  secret: string,
  { method = "POST" as "POST" | "GET" | "OPTIONS", headers = {}, of = harness } = {},
) {
  const authorization = secret === "" ? {} : { authorization: `Bearer ${secret}` };
  const answer = await request(`${of.adminUrl}/console/sign-in`, { method, headers: { ...authorization, ...headers } });
  const text = await answer.body.text();
  return { status: answer.statusCode, headers: answer.headers, text };
}

async function call(token: string, method: string, body: object = {}, of = harness) {
  const answer = await request(`${of.adminUrl}/relay.admin.v1.${method}`, {
    method: "POST",
    headers: { authorization: `Bearer ${token}`, "content-type": "application/json" },
    body: JSON.stringify(body),
  });
  return [answer.statusCode, await answer.body.json()];
}

const operator = () => tokensOf()[0] as ReturnType<typeof parseTokenFile>[0];

describe("a sign-in link", () => {
  it("gives the rights of the first operator, once, and the audit trail has it", async () => {
    const link = await newLink();
    const secret = link.split("#sign-in=")[1] ?? "";
    expect(link).toMatch(new RegExp(`^${harness.adminUrl}/console/#sign-in=[\\w-]{43}$`));
    const { status, headers, text } = await redeem(secret);
    expect([status, headers["cache-control"]]).toEqual([200, "no-store"]);
    const { token } = JSON.parse(text) as { token: string };
    expect(await call(token, "SessionService/GetSession")).toMatchObject([
      200,
      { operatorName: "alice", role: "ROLE_OPERATOR" },
    ]);
    const [status2] = await call(token, "ApplicationService/CreateApplication", { application: { displayName: "A" } });
    expect(status2).toBe(200);
    const records = await harness.store.audit.list({ beforeId: undefined, publicKey: undefined, limit: 2 });
    expect(records.map(({ actor, method }) => [actor, method])).toEqual([
      ["alice", "relay.admin.v1.ApplicationService.CreateApplication"],
      ["alice", "relay console"],
    ]);
    expect(await redeem(secret)).toMatchObject({ status: 403, text: expect.stringContaining("relay console") });
  });

  it("is one browser's when eight redeem it at once", async () => {
    const secret = await newSecret();
    const seen = await Promise.all(Array.from({ length: 8 }, () => redeem(secret)));
    expect(seen.map(({ status }) => status).sort()).toEqual([200, ...Array(7).fill(403)]);
  });

  it("is never seen half written, as which another command would remove it as ended", async () => {
    const own = await startHarness();
    const seen = new Set<string>();
    let isOver = false;
    const look = () => {
      if (isOver) return;
      for (const name of readdirSync(spoolOf(own)).filter((each) => each.endsWith(".sign-in")))
        seen.add(readFileSync(join(spoolOf(own), name), "utf8"));
      setImmediate(look);
    };
    look();
    for (let made = 0; made < 20; made += 1) await newSecret(Date.now(), own);
    isOver = true;
    expect([...seen].filter((text) => !/^\d+ [\w-]{43}\n$/.test(text))).toEqual([]);
    await own.close();
  });

  it("ends after 15 minutes, and what is left of it goes with the next one", async () => {
    const ended = await newSecret(Date.now() - 15 * MINUTE_MS);
    expect((await redeem(ended)).status).toBe(403);
    expect((await redeem(await newSecret(Date.now() - 14 * MINUTE_MS))).status).toBe(200);
    await newSecret(Date.now() - 20 * MINUTE_MS);
    const links = () => readdirSync(spoolOf()).filter((name) => name.endsWith(".sign-in"));
    expect(links()).toHaveLength(1);
    const secret = await newSecret();
    expect(links()).toHaveLength(1);
    expect((await redeem(secret)).status).toBe(200);
    expect(links()).toEqual([]);
  });

  it("leaves nothing for good when its command is killed, and nothing of it is removed before", async () => {
    const own = await startHarness();
    const now = Date.now();
    const draft = (digit: string, text: string, changed = now) => {
      const name = `${digit.repeat(64)}.sign-in.draft`;
      writeFileSync(join(spoolOf(own), name), text);
      utimesSync(join(spoolOf(own), name), changed / 1000, changed / 1000);
      return name;
    };
    const line = (endsAt: number) => `${endsAt} ${"A".repeat(43)}\n`;
    const fresh = [draft("a", ""), draft("b", String(now).slice(0, 5)), draft("c", line(now + MINUTE_MS))];
    draft("d", "", now - 16 * MINUTE_MS);
    draft("e", line(now - MINUTE_MS));
    await newSecret(now, own);
    const drafts = readdirSync(spoolOf(own)).filter((name) => name.endsWith(".draft"));
    expect(drafts.sort()).toEqual(fresh);
    await own.close();
  });

  it.each([0o022, 0o077])("can be read by whom the umask %o lets read a new file", async (mask) => {
    const own = await startHarness();
    const before = process.umask(mask);
    await newSecret(Date.now(), own).finally(() => process.umask(before));
    const [name = ""] = readdirSync(spoolOf(own)).filter((each) => each.endsWith(".sign-in"));
    expect(statSync(join(spoolOf(own), name)).mode & 0o777).toBe(0o666 & ~mask);
    await own.close();
  });

  it("says that the relay may not read a link of another user, and works once it may", async () => {
    const own = await startHarness();
    const secret = await newSecret(Date.now(), own);
    const [name = ""] = readdirSync(spoolOf(own)).filter((each) => each.endsWith(".sign-in"));
    const file = join(spoolOf(own), name);
    chmodSync(file, 0o000);
    // Root may read any file.
    const isRoot = process.getuid?.() === 0;
    if (isRoot) process.seteuid?.("nobody");
    const refused = await redeem(secret, { of: own }).finally(() => isRoot && process.seteuid?.(0));
    expect(refused).toMatchObject({ status: 403, text: expect.stringMatching(/may not read .* another user/) });
    chmodSync(file, 0o600);
    expect((await redeem(secret, { of: own })).status).toBe(200);
    await own.close();
  });

  it("is kept as a hash alone", async () => {
    const secret = await newSecret();
    const [file = "", ...more] = readdirSync(spoolOf()).filter((name) => name.endsWith(".sign-in"));
    expect([more, file.includes(secret)]).toEqual([[], false]);
    expect(readFileSync(join(spoolOf(), file), "utf8")).not.toContain(secret);
    await redeem(secret);
    expect(harness.logLines.join("")).not.toContain(secret);
  });

  it.each([
    ["a name with a path in it", "../admin.tokens"],
    ["nothing", ""],
    ["another secret", "A".repeat(43)],
    ["an admin token that is not on file", `${ADMIN_TOKENS.operator}x`],
  ])("is not %s", async (_, secret) => {
    const own = await startHarness();
    const good = await newSecret(Date.now(), own);
    expect((await redeem(secret, { of: own })).status).toBe(403);
    expect((await redeem(good, { of: own })).status).toBe(200);
    await own.close();
  });

  it("is not used up by what a page of another origin can send, or by a program that looks at links", async () => {
    const secret = await newSecret();
    const [origin, path] = [{ origin: "https://evil.example" }, `${harness.adminUrl}/console/?sign-in=${secret}`];
    expect((await request(path)).statusCode).toBe(200);
    expect(await redeem(secret, { method: "GET" })).toMatchObject({ status: 405, headers: { allow: "POST" } });
    const preflight = await redeem("", { method: "OPTIONS", headers: origin });
    expect([preflight.status, preflight.headers["access-control-allow-origin"]]).toEqual([405, undefined]);
    const form = { ...origin, "content-type": "application/x-www-form-urlencoded" };
    expect((await redeem("", { headers: form })).status).toBe(403);
    expect((await redeem(secret)).status).toBe(200);
  });

  it.each<[string, (text: string) => string]>([
    ["a later end", (text) => text.replace(/^\d+/, String(Date.now() * 2))],
    ["no signature", (text) => text.replace(/ .*/, " ")],
    ["another signature", (text) => text.replace(/ .*/, ` ${"A".repeat(43)}`)],
    ["nothing", () => ""],
  ])("is made by nobody who can only write in the folder: with %s", async (_, forge) => {
    const secret = await newSecret();
    const [name = ""] = readdirSync(spoolOf()).filter((each) => each.endsWith(".sign-in"));
    const file = join(spoolOf(), name);
    writeFileSync(file, forge(readFileSync(file, "utf8")));
    expect((await redeem(secret)).status).toBe(403);
  });

  it("is guessed sixty times in a minute at most", async () => {
    const own = await startHarness();
    const good = await newSecret(Date.now(), own);
    const guesses = await Promise.all(
      Array.from({ length: 60 }, (_, at) => redeem(String(at).padStart(43, "A"), { of: own })),
    );
    expect(new Set(guesses.map(({ status }) => status))).toEqual(new Set([403]));
    const { status, headers } = await redeem(good, { of: own });
    expect([status, Number(headers["retry-after"]) > 0]).toEqual([429, true]);
    await own.close();
  });

  it("is not kept from anybody by what any web page can send", async () => {
    const good = await newSecret(Date.now());
    const bare = () => fetch(`${harness.adminUrl}/console/sign-in`, { method: "POST", body: "a page's" });
    for (let sent = 0; sent < 61; sent += 1) expect((await bare()).status).toBe(403);
    expect((await redeem(good)).status).toBe(200);
  });

  it("lets nobody in where the file has no operator", async () => {
    const file = join(harness.folder, "readers.tokens");
    writeFileSync(file, `bob read-only ${ADMIN_TOKENS.readOnly}\n`, { mode: 0o600 });
    const own = await startHarness({ env: { RELAY_ADMIN_TOKEN_FILE: file } });
    // Made with what the file had before.
    expect((await redeem(await newSecret(Date.now(), own), { of: own })).status).toBe(403);
    const tokens = parseTokenFile(readFileSync(file, "utf8"), file);
    expect(await createSignInLink(own.adminUrl, { folder: spoolOf(own), tokens }, Date.now())).toBeUndefined();
    await own.close();
  });
});

async function sessionFor(secret: string, of = harness): Promise<string> {
  return (JSON.parse((await redeem(secret, { of })).text) as { token: string }).token;
}

async function signOut(token: string, url = harness.adminUrl): Promise<number> {
  const answer = await request(`${url}/console/sign-out`, {
    method: "POST",
    headers: token === "" ? {} : { authorization: `Bearer ${token}` },
  });
  await answer.body.dump();
  return answer.statusCode;
}

const statusOf = async (token: string, of: { readonly adminUrl: string } = harness) =>
  (await call(token, "SessionService/GetSession", {}, of as Harness))[0];

describe("signing out", () => {
  it("ends the session for every copy of it, on every relay that shares the store, and no other session", async () => {
    await harness.startPeer();
    const peer = { adminUrl: harness.peerAdminUrls[0] ?? "" };
    const stolen = await sessionFor(ADMIN_TOKENS.operator);
    const other = await sessionFor(ADMIN_TOKENS.operator);
    expect([await statusOf(stolen), await statusOf(stolen, peer)]).toEqual([200, 200]);
    expect(await signOut(stolen)).toBe(204);
    expect([await statusOf(stolen), await statusOf(stolen, peer), await signOut(stolen)]).toEqual([401, 401, 401]);
    const metrics = { headers: { authorization: `Bearer ${stolen}` } };
    expect((await request(`${harness.adminUrl}/metrics`, metrics)).statusCode).toBe(401);
    // It gets no other one, and what it was made of is as good as before.
    expect((await redeem(stolen)).status).toBe(403);
    expect([await statusOf(other), await statusOf(ADMIN_TOKENS.operator)]).toEqual([200, 200]);
    const records = await harness.store.audit.list({ beforeId: undefined, publicKey: undefined, limit: 2 });
    expect(records.map(({ actor, method, resource }) => [actor, method, resource])).toEqual([
      ["alice", "relay console sign-out", "sessions/alice"],
      ["alice", "relay console", "sessions/alice"],
    ]);
    expect(harness.logLines.join("")).not.toContain(stolen);
  });

  it("ends what a copy of the session still watches", async () => {
    const stolen = await sessionFor(ADMIN_TOKENS.readOnly);
    const { callRecords } = createAdminClients(harness, "connect", stolen);
    const answers = callRecords.watchCallRecords({})[Symbol.asyncIterator]();
    await answers.next();
    expect(await signOut(stolen)).toBe(204);
    const application = await harness.createApplication();
    const [[, rest] = []] = createCallers(harness.url);
    const call = { url: `${harness.sandbox.origin}/me`, method: "GET" };
    await rest?.({ providerName: "sandbox", userId: "ada", publicKey: application.publicKey, call });
    await expect(answers.next()).rejects.toMatchObject({ code: Code.Unauthenticated });
  });

  it("is not for admin tokens, nor for what a page of another origin can send", async () => {
    const session = await sessionFor(ADMIN_TOKENS.operator);
    expect([await signOut(ADMIN_TOKENS.operator), await signOut(""), await signOut("x".repeat(43))]).toEqual([
      400, 401, 401,
    ]);
    expect(await statusOf(session)).toBe(200);
  });

  it("is not said to be done to a client that has used up its tries: the session lives", async () => {
    const own = await startHarness();
    const session = await sessionFor(ADMIN_TOKENS.operator, own);
    // A wrong signature is a guess at the token that it is made of, as the token itself is.
    const forged = createSession({ ...operator(), hash: Buffer.alloc(32) }, Date.now());
    for (let tries = 0; tries < 60; tries++) expect(await statusOf(tries % 2 ? "x".repeat(43) : forged, own)).toBe(401);
    const headers = { authorization: `Bearer ${session}` };
    const answer = await request(`${own.adminUrl}/console/sign-out`, { method: "POST", headers });
    await answer.body.dump();
    expect([answer.statusCode, Number(answer.headers["retry-after"]) > 0]).toEqual([429, true]);
    await own.startPeer();
    expect(await statusOf(session, { adminUrl: own.peerAdminUrls[0] ?? "" })).toBe(200);
    await own.close();
  });

  it("leaves the tries of admin tokens alone, whatever open tabs go on sending", async () => {
    const own = await startHarness();
    const signedOut = await sessionFor(ADMIN_TOKENS.operator, own);
    expect(await signOut(signedOut, own.adminUrl)).toBe(204);
    const over = createSession(operator(), Date.now() - 12 * 60 * MINUTE_MS);
    const ofOlderBuild = createSession(operator(), Date.now()).replace(/\.[\w-]{22}\./, ".");
    for (let tries = 0; tries < 30; tries++) {
      for (const session of [signedOut, over, ofOlderBuild]) expect(await statusOf(session, own)).toBe(401);
    }
    expect(await statusOf(ADMIN_TOKENS.operator, own)).toBe(200);
    await own.close();
  });

  it.skipIf(process.env["TEST_DATABASE"] === "postgres")(
    "tells a store that refuses for now from a fault of the relay, which the log has",
    async () => {
      const own = await startHarness();
      const session = await sessionFor(ADMIN_TOKENS.operator, own);
      const secret = await newSecret(Date.now(), own);
      const db = new Database(join(own.folder, "relay.db"));
      db.exec("BEGIN IMMEDIATE");
      expect(await redeem(ADMIN_TOKENS.operator, { of: own })).toMatchObject({
        status: 503,
        text: expect.stringContaining("cannot write to its database"),
      });
      expect((await redeem(secret, { of: own })).status).toBe(503);
      expect(await signOut(session, own.adminUrl)).toBe(503);
      db.exec("ROLLBACK");
      // The link is not used up by what came to nothing.
      expect([(await redeem(secret, { of: own })).status, (await redeem(secret, { of: own })).status]).toEqual([
        200, 403,
      ]);
      db.exec("ALTER TABLE ended_sessions RENAME TO away");
      db.close();
      const headers = { authorization: `Bearer ${session}` };
      expect((await request(`${own.adminUrl}/metrics`, { headers })).statusCode).toBe(500);
      expect(await signOut(session, own.adminUrl)).toBe(500);
      expect(own.logLines.join("")).toContain('"class":"SqliteError"');
      await own.close();
    },
  );

  it("is remembered for a week after the session's time, whatever the clock of one relay says", async () => {
    const [now, week] = [Date.now(), 7 * 86_400_000];
    const audit = { id: "0", at: now, actor: "a", method: "m", resource: "r", publicKey: "", changedFields: [] };
    const { sessions } = harness.store;
    const end = (id: string, endsAt: number, at: number) =>
      sessions.end({ id, endsAt }, at, { ...audit, id: `audit-${id}-${at}` });
    expect([await end("one", now + 1000, now), await end("one", now + 1000, now)]).toEqual([true, false]);
    await end("two", now + 9000, now + week + 999);
    expect([await sessions.isEnded("one"), await sessions.isEnded("two")]).toEqual([true, true]);
    await end("three", now + 9000, now + week + 1000);
    expect([await sessions.isEnded("one"), await sessions.isEnded("two")]).toEqual([false, true]);
  });
});

describe("the session of a sign-in link", () => {
  it.each<[string, () => string]>([
    ["has ended", () => createSession(operator(), Date.now() - 12 * 60 * MINUTE_MS)],
    ["is said to end later", () => createSession(operator(), Date.now()).replace(/_\d+/, `_${Date.now() * 2}`)],
    ["is signed by another token", () => createSession({ ...operator(), hash: Buffer.alloc(32) }, Date.now())],
    ["has no signature", () => createSession(operator(), Date.now()).replace(/\..*/, ".")],
    ["is of the hash itself", () => operator().hash.toString("base64url")],
  ])("is refused when it %s", async (_, make) => {
    const [status] = await call(make(), "SessionService/GetSession");
    expect(status).toBe(401);
  });

  it("has the role that the file gives its operator by the next start", async () => {
    const session = createSession(operator(), Date.now());
    const file = join(harness.folder, "lowered.tokens");
    writeFileSync(file, `alice read-only ${ADMIN_TOKENS.operator}\n`, { mode: 0o600 });
    const own = await startHarness({ env: { RELAY_ADMIN_TOKEN_FILE: file } });
    expect(await call(session, "SessionService/GetSession", {}, own)).toMatchObject([200, { role: "ROLE_READ_ONLY" }]);
    const created = { application: { displayName: "A" } };
    expect(await call(session, "ApplicationService/CreateApplication", created, own)).toMatchObject([403, {}]);
    await own.close();
  });

  it("ends with what it watches, though nobody signs out", async () => {
    vi.useFakeTimers({ toFake: ["Date"] });
    onTestFinished(() => void vi.useRealTimers());
    const own = await startHarness();
    const session = await sessionFor(ADMIN_TOKENS.readOnly, own);
    const { callRecords } = createAdminClients(own, "connect", session);
    const answers = callRecords.watchCallRecords({})[Symbol.asyncIterator]();
    await answers.next();
    vi.setSystemTime(Date.now() + 12 * 60 * MINUTE_MS);
    const { publicKey } = await own.createApplication();
    const [[, rest] = []] = createCallers(own.url);
    const call = { url: `${own.sandbox.origin}/me`, method: "GET" };
    await rest?.({ providerName: "sandbox", userId: "ada", publicKey, call });
    await expect(answers.next()).rejects.toMatchObject({ code: Code.Unauthenticated });
    await own.close();
  });

  it("lasts for a working day", async () => {
    const [status] = await call(
      createSession(operator(), Date.now() - 12 * 60 * MINUTE_MS + MINUTE_MS),
      "SessionService/GetSession",
    );
    expect(status).toBe(200);
  });
});
