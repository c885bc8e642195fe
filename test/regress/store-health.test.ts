import { closeSync, copyFileSync, openSync, renameSync, rmSync, writeSync } from "node:fs";
import { join } from "node:path";
import Database from "better-sqlite3";
import { request } from "undici";
import { describe, expect, it, onTestFinished } from "vitest";
import { startIn } from "../server/second-relay.js";
import { ADMIN_TOKENS, type Harness, startHarness } from "../support/harness.js";

const POLLING = { timeout: 15_000 };

/** A relay on a file of its own with a user whose access token has ended. */
async function startedRelay() {
  const harness = await startHarness();
  onTestFinished(() => harness.close());
  const application = await harness.createApplication();
  await harness.putClient(application);
  const { refresh_token: refreshToken } = harness.sandbox.issueToken();
  await harness.connect(application, "ada", { refreshToken, expiresAt: 1 });
  const target = `${harness.url}/oauth/method/sandbox/call?user_id=ada&public_key=${application.publicKey}`;
  return {
    harness,
    file: join(harness.folder, "relay.db"),
    call: async () => {
      const body = JSON.stringify({ url: `${harness.sandbox.origin}/me`, method: "GET" });
      const { rows } = (await (await request(target, { method: "POST", body })).body.json()) as {
        rows: [{ pincStatus: string; errorType?: string }];
      };
      return rows[0].errorType ?? rows[0].pincStatus;
    },
    tokenRequests: () => harness.sandbox.requests.filter((each) => each.target === "/oauth/token").length,
  };
}

async function readiness({ url }: { readonly url: string }): Promise<string> {
  const { statusCode, body } = await request(`${url}/readyz`);
  return `${statusCode} ${(await body.text()).trim()}`;
}

/** The value of `relay_store_check_ok` for one check. */
async function metric({ adminUrl }: Harness, check: string): Promise<string | undefined> {
  const headers = { authorization: `Bearer ${ADMIN_TOKENS.readOnly}` };
  const text = await (await request(`${adminUrl}/metrics`, { headers })).body.text();
  return new RegExp(`^relay_store_check_ok\\{check="${check}"\\} (.*)$`, "m").exec(text)?.[1];
}

const toldOf = ({ logLines }: Harness, check: string) =>
  logLines.map((line) => JSON.parse(line)).filter((line) => line.check === check && line.msg === "store check failed");

const SPOILED: ReadonlyArray<readonly [what: string, spoil: (file: string) => void]> = [
  ["was deleted", (file) => rmSync(file)],
  ["was moved", (file) => renameSync(file, `${file}-away`)],
  [
    "was replaced by a backup",
    (file) => {
      copyFileSync(file, `${file}-copy`);
      renameSync(`${file}-copy`, file);
    },
  ],
  ["lost its write-ahead log", (file) => rmSync(`${file}-wal`)],
];

describe("a database file that is not the one at its path any more", () => {
  it.each(SPOILED)("that %s ends readiness, begins no refresh, and is told", async (_what, spoil) => {
    const { harness, file, call, tokenRequests } = await startedRelay();
    expect(await readiness(harness)).toBe("200 ok");
    spoil(file);
    expect(await readiness(harness)).toMatch(
      /^503 not ready: The relay's database file was moved, deleted or replaced/,
    );
    expect(["STORE_UNAVAILABLE", "REFRESH_UNAVAILABLE"]).toContain(await call());
    expect(tokenRequests()).toBe(0);
    await expect.poll(() => metric(harness, "file"), POLLING).toBe("0");
    expect(toldOf(harness, "file")).toMatchObject([{ level: 50 }]);
  });

  it("is taken again when the same files are back", async () => {
    const { harness, file, call } = await startedRelay();
    renameSync(file, `${file}-away`);
    await expect.poll(() => metric(harness, "file"), POLLING).toBe("0");
    renameSync(`${file}-away`, file);
    await expect.poll(() => readiness(harness), POLLING).toBe("200 ok");
    expect(await call()).toBe("success");
  });
});

describe("a store that cannot be written", () => {
  it("is not ready, says why, and is ready when it can be written again", async () => {
    const { harness, file, call } = await startedRelay();
    const other = new Database(file);
    onTestFinished(() => void other.close());
    other.exec("BEGIN IMMEDIATE");
    expect(["STORE_UNAVAILABLE", "REFRESH_UNAVAILABLE"]).toContain(await call());
    await expect.poll(() => readiness(harness), POLLING).toMatch(/^503 not ready: .* locked by another process/);
    expect(await metric(harness, "write")).toBe("0");
    other.exec("ROLLBACK");
    await expect.poll(() => readiness(harness), POLLING).toBe("200 ok");
    expect([await metric(harness, "write"), toldOf(harness, "write").length]).toEqual(["1", 1]);
  });
});

/** Writes nonsense over the pages of one table, as a failing disk does. */
function overwrite(file: string, table: string): void {
  const db = new Database(file);
  db.pragma("wal_checkpoint(TRUNCATE)");
  const pages = db.prepare<[string], number>("SELECT pageno FROM dbstat WHERE name = ?").pluck().all(table);
  const size = db.pragma("page_size", { simple: true }) as number;
  db.close();
  const descriptor = openSync(file, "r+");
  for (const page of pages) writeSync(descriptor, Buffer.alloc(size, 0xa5), 0, size, (page - 1) * size);
  closeSync(descriptor);
}

describe("a store with damaged pages", () => {
  it("is not ready, whatever table they belong to, from the start on", async () => {
    const { harness, file } = await startedRelay();
    await harness.closeRelay();
    overwrite(file, "webhook_events");
    const service = await startIn(harness.folder);
    onTestFinished(() => service.close(0));
    await expect
      .poll(() => readiness(service), POLLING)
      .toBe("503 not ready: The relay's store is damaged. The operator must restore it.");
  });

  it("is found out as soon as an operation fails on them", async () => {
    const { harness, file, call } = await startedRelay();
    await expect.poll(() => metric(harness, "pages"), POLLING).toBe("1");
    overwrite(file, "connections");
    // A row that was read within the last second is not read again.
    await expect.poll(call, POLLING).toBe("STORE_UNAVAILABLE");
    await expect.poll(() => readiness(harness), POLLING).toMatch(/^503 not ready: The relay's store is damaged/);
    expect(await metric(harness, "pages")).toBe("0");
  });
});
