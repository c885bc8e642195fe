import { createHash, randomBytes } from "node:crypto";
import { once } from "node:events";
import { existsSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { type AddressInfo, connect, createServer } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { createClient } from "@connectrpc/connect";
import { createGrpcTransport } from "@connectrpc/connect-node";
import Database from "better-sqlite3";
import { request } from "undici";
import { afterAll, beforeAll, beforeEach, describe, expect, it, onTestFinished } from "vitest";
import { RelayService } from "../../gen/relay/v1/relay_pb.js";
import { type Harness, startHarness, type TestApplication } from "../support/harness.js";
import { answer, type RawProvider, startRawProvider } from "../support/raw-provider.js";
import { startIn, startSecondRelay } from "./second-relay.js";

/** Whether anybody has the database open: SQLite changes the journal mode only when it is alone. */
function isInUse(file: string): boolean {
  const db = new Database(file, { timeout: 0 });
  try {
    return db.pragma("journal_mode = DELETE", { simple: true }) !== "delete";
  } catch {
    return true;
  } finally {
    db.close();
  }
}

const hashOf = (path: string) => createHash("sha256").update(readFileSync(path)).digest("hex");

function refusal(port: number): Promise<string> {
  return new Promise((resolve) => {
    const socket = connect(port, "127.0.0.1");
    socket.on("connect", () => resolve("accepted")).on("error", (error) => resolve(Reflect.get(error, "code")));
    socket.on("close", () => socket.destroy());
  });
}

describe("startService()", () => {
  let folder: string;
  let file: string;

  beforeEach(async () => {
    folder = mkdtempSync(join(tmpdir(), "relay-start-"));
    file = join(folder, "relay.db");
    onTestFinished(() => rmSync(folder, { recursive: true, force: true }));
    await (await startIn(folder)).close(0);
  });

  it("refuses a key that does not open the store, and changes nothing", async () => {
    const harness = await startHarness();
    onTestFinished(() => harness.close());
    await harness.createApplication();
    const content = () => ["relay.db", "relay.db-wal", "relay.key"].map((name) => hashOf(join(harness.folder, name)));
    const before = content();
    const id = readFileSync(join(harness.folder, "relay.key"), "utf8").trim().split("\n").at(-1)?.split(":")[0];
    const wrong = join(folder, "wrong.key");
    const line = randomBytes(32).toString("base64");
    for (const keys of [`${id}:${line}\n`, `another:${line}\n`, undefined]) {
      if (keys === undefined) rmSync(wrong);
      else writeFileSync(wrong, keys, { mode: 0o600 });
      await expect(startIn(harness.folder, { RELAY_KEY_FILE: wrong })).rejects.toThrow(/key/i);
      expect(content()).toEqual(before);
    }
    await (await startIn(harness.folder)).close(0);
  });

  it("refuses a port that is taken, and leaves nothing open", async () => {
    const taken = createServer().listen(0, "127.0.0.1");
    await once(taken, "listening");
    onTestFinished(() => void taken.close());
    const { port } = taken.address() as AddressInfo;
    await expect(startIn(folder, { RELAY_LISTEN: `127.0.0.1:${port}` })).rejects.toMatchObject({ code: "EADDRINUSE" });
    expect(existsSync(`${file}-wal`)).toBe(false);
    expect(isInUse(file)).toBe(false);
  });

  it("refuses a certificate that cannot be read or used, and leaves nothing open", async () => {
    writeFileSync(join(folder, "bad.pem"), "no certificate");
    for (const name of ["missing.pem", "bad.pem"]) {
      const env = { RELAY_TLS_CERT: join(folder, name), RELAY_TLS_KEY: join(folder, name) };
      await expect(startIn(folder, env)).rejects.toThrow();
      expect(isInUse(file)).toBe(false);
    }
  });

  it("refuses a definition that is malformed, before it opens anything", async () => {
    rmSync(file);
    writeFileSync(join(folder, "wrong.json"), '{"name":"wrong","apiOrigins":["https://a.test"],"nothing":1}');
    await expect(startIn(folder)).rejects.toThrow(/wrong\.json/);
    expect(existsSync(file)).toBe(false);
  });

  it("keeps the database open while it runs, and no longer", async () => {
    const service = await startIn(folder);
    expect(isInUse(file)).toBe(true);
    await service.close(0);
    expect(isInUse(file)).toBe(false);
    expect(await refusal(Number(new URL(service.url).port))).toBe("ECONNREFUSED");
  });
});

describe("close()", () => {
  let provider: RawProvider;
  let harness: Harness;
  let application: TestApplication;
  let release: () => void;

  beforeAll(async () => {
    provider = await startRawProvider((socket) => {
      release = () => void socket.write(answer('{"held":true}', "Content-Type: application/json"));
    });
    harness = await startHarness({ providers: [{ name: "held", apiOrigins: [provider.origin] }] });
    application = await harness.createApplication();
    await harness.connect(application, "ada", { providerName: "held" });
  });

  afterAll(async () => {
    await harness.close();
    await provider.close();
  });

  const row = { pincStatus: "success", data: { held: true } };
  const call = () => ({ url: `${provider.origin}/`, method: "GET" });

  const CALLS: ReadonlyArray<readonly [string, (url: string) => Promise<unknown>]> = [
    [
      "the JSON route",
      async (url) => {
        const target = `${url}/oauth/method/held/call?user_id=ada&public_key=${application.publicKey}`;
        const answered = await request(target, { method: "POST", body: JSON.stringify(call()) });
        expect(answered.headers["connection"]).toBe("close");
        return answered.body.json();
      },
    ],
    [
      "gRPC",
      (url) => {
        const client = createClient(RelayService, createGrpcTransport({ baseUrl: url }));
        const { publicKey } = application;
        // Node.js' client does not always notice that its connection was cut while the machine is busy.
        const options = { timeoutMs: 10_000 };
        return client.call({ providerName: "held", userId: "ada", publicKey, call: call() }, options);
      },
    ],
  ];

  it.each(CALLS)("lets a call in flight finish over %s, and takes no new connection", async (protocol, perform) => {
    const service = await startSecondRelay(harness);
    const port = Number(new URL(service.url).port);
    const before = provider.requests.length;
    const answered = perform(service.url);
    await provider.seen(before + 1);
    const closed = service.close(60_000);
    expect(await refusal(port)).toBe("ECONNREFUSED");
    release();
    expect(await answered).toMatchObject({ rows: [protocol === "gRPC" ? { pincStatus: "success" } : row] });
    await closed;
  });

  it.each(CALLS)("cuts a call that takes longer than the grace over %s", async (_protocol, perform) => {
    const service = await startSecondRelay(harness);
    const before = provider.requests.length;
    const answered = perform(service.url).then(
      () => "answered",
      () => "cut",
    );
    await provider.seen(before + 1);
    await service.close(50);
    expect(await answered).toBe("cut");
    await provider.letGo(before);
  });

  it("may be called again", async () => {
    const service = await startSecondRelay(harness);
    await Promise.all([service.close(0), service.close(0)]);
    await service.close(0);
  });
});
