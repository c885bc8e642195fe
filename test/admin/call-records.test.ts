import { mkdirSync } from "node:fs";
import { join } from "node:path";
import { timestampFromMs, timestampMs } from "@bufbuild/protobuf/wkt";
import { Code } from "@connectrpc/connect";
import { afterAll, beforeAll, beforeEach, describe, expect, it, vi } from "vitest";
import type { CallRecord } from "../../gen/relay/admin/v1/call_record_pb.js";
import { createCallers } from "../support/callers.js";
import { ADMIN_TOKENS, type Harness, startHarness, type TestApplication } from "../support/harness.js";
import { createAdminClients } from "./admin-bed.js";
import { failure } from "./failure.js";
import { madePageToken } from "./made-page-token.js";

let harness: Harness;
let application: TestApplication;
let peerUrl: string;
beforeAll(async () => {
  harness = await startHarness();
  peerUrl = await harness.startPeer();
});
afterAll(() => harness.close());
beforeEach(async () => {
  application = await harness.createApplication();
  await harness.connect(application, "ada");
});

const clients = new Map<string, ReturnType<typeof createAdminClients>>();

/** One connection for each token: a client has only so many. */
function clientOf(token: string) {
  const known = clients.get(token) ?? createAdminClients(harness, "grpc", token);
  clients.set(token, known);
  return known.callRecords;
}

const operator = () => clientOf(ADMIN_TOKENS.operator);

/** A call over the JSON route; resolves to its id. */
async function call(
  path: string,
  { url = harness.url, userId = "ada", requestId = "", providerName = "sandbox" } = {},
): Promise<string> {
  const [[, rest] = []] = createCallers(url);
  const description = { url: harness.sandbox.origin + path, method: "GET" };
  const whose = { providerName, userId, publicKey: application.publicKey };
  const outerHeaders = requestId === "" ? {} : { "x-request-id": requestId };
  const row = await rest?.({ ...whose, call: description, outerHeaders });
  return String(row?.["callId"]);
}

const list = (more: object = {}) => operator().listCallRecords({ publicKey: application.publicKey, ...more });

/** The application's calls, the newest first, when they are so many. */
const recorded = (count: number) =>
  vi.waitFor(
    async () => {
      const { callRecords } = await list();
      expect(callRecords).toHaveLength(count);
      return callRecords;
    },
    { timeout: 10_000 },
  );

/** Changes the last byte of every capture. */
async function damageCaptures(): Promise<void> {
  for (const { table, page, replace } of harness.store.sealedRows) {
    if (table !== "call_captures") continue;
    const rows = await page("", 100);
    const flipped = (value: Uint8Array | undefined) =>
      value?.map((byte, at) => (at < value.length - 1 ? byte : byte ^ 1));
    expect(await replace(rows.map((row) => ({ row, values: row.values.map(flipped) })))).toBeGreaterThan(0);
  }
}

const pathsOf = (records: readonly CallRecord[]) => records.map(({ path }) => path);

describe("finding calls", () => {
  it("finds those of a user by the id, also of one who is not connected, while no record or log line holds an id", async () => {
    for (const [path, userId] of [
      ["/me", "ada"],
      ["/items", "CANARY-bea"],
      ["/status/404", "ada"],
    ] as const)
      await call(path, { userId });
    await recorded(3);
    expect(pathsOf((await list({ userId: "ada" })).callRecords)).toEqual(["/status/404", "/me"]);
    const [ofBea] = (await list({ userId: "CANARY-bea" })).callRecords;
    expect([ofBea?.path, ofBea?.errorType]).toEqual(["/items", "INVALID_OAUTHID"]);
    expect((await list({ userId: "ada", providerName: "other" })).callRecords).toEqual([]);
    const other = await harness.createApplication();
    expect((await list({ publicKey: other.publicKey, userId: "ada" })).callRecords).toEqual([]);
    expect(await failure(list({ publicKey: "", userId: "ada" }))).toMatchObject({ field: "public_key" });
    const blocks = await harness.store.calls.list({
      applicationId: application.id,
      beforeSequence: undefined,
      limit: 10,
    });
    expect(blocks.map(({ calls }) => calls).join()).not.toMatch(/CANARY|"ada"/);
    expect(harness.logLines.join("")).not.toContain("CANARY-bea");
  });

  it("names the user of a record for as long as the connection is there", async () => {
    const callId = await call("/me");
    await recorded(1);
    expect((await operator().getCallRecord({ callId })).userId).toBe("ada");
    const key = { applicationId: application.id, userId: "ada", providerName: "sandbox" };
    await harness.store.connections.delete(key, Date.now());
    expect((await operator().getCallRecord({ callId })).userId).toBe("");
  });

  it("finds a call by what its caller called the request, and by when it came in", async () => {
    const before = Date.now();
    await call("/me", { requestId: 'the-"one"' });
    await call("/items");
    const [last] = await recorded(2);
    const [found, ...others] = (await list({ requestId: 'the-"one"', publicKey: "" })).callRecords;
    expect([found?.path, found?.requestId, others]).toEqual(["/me", 'the-"one"', []]);
    expect((await list({ requestId: "the-other" })).callRecords).toEqual([]);
    const at = (ms: number) => timestampFromMs(ms);
    const lastMs = timestampMs(last?.startTime ?? at(0));
    expect(pathsOf((await list({ startTime: at(lastMs) })).callRecords)).toEqual(["/items"]);
    expect(pathsOf((await list({ startTime: at(before), endTime: at(lastMs) })).callRecords)).toEqual(["/me"]);
    expect((await list({ endTime: at(before) })).callRecords).toEqual([]);
  });
});

describe("ListCallRecords", () => {
  it("lists calls page by page, of one application or of all", async () => {
    for (const path of ["/me?x=CANARY", "/status/404", "/items"]) await call(path);
    const [newest, middle, oldest] = await recorded(3);
    expect([newest, middle, oldest].map((record) => [record?.path, record?.statusCode, record?.errorType])).toEqual([
      ["/items", 200, ""],
      ["/status/404", 404, "API_ERROR"],
      ["/me", 200, ""],
    ]);
    expect(oldest).toMatchObject({
      publicKey: application.publicKey,
      surface: "rest",
      providerName: "sandbox",
      method: "GET",
      origin: harness.sandbox.origin,
      queryKeys: ["x"],
      captured: false,
      totalDuration: { seconds: 0n, nanos: expect.any(Number) },
      providerDuration: { seconds: 0n, nanos: expect.any(Number) },
    });
    const first = await list({ pageSize: 2 });
    const second = await list({ pageSize: 2, pageToken: first.nextPageToken });
    expect(pathsOf([...first.callRecords, ...second.callRecords])).toEqual(["/items", "/status/404", "/me"]);
    expect(second.nextPageToken).toBe("");
    const { callRecords } = await operator().listCallRecords({ pageSize: 1 });
    expect(callRecords).toMatchObject([{ callId: newest?.callId, publicKey: application.publicKey }]);
  });

  it("lists what the other fields name", async () => {
    for (const path of ["/me", "/status/404"]) await call(path);
    await call("/me", { userId: "nobody" });
    await recorded(3);
    const names = async (more: object) => (await list(more)).callRecords.map(({ errorType }) => errorType);
    expect(await names({ errorType: "API_ERROR" })).toEqual(["API_ERROR"]);
    expect(await names({ providerName: "github" })).toEqual([]);
    expect(await names({ providerName: "sandbox", errorType: "INVALID_OAUTHID" })).toEqual(["INVALID_OAUTHID"]);
    await call("/me", { providerName: "azure-ad" });
    await recorded(4);
    for (const providerName of ["azure-ad", "msgraphusers"])
      expect(await names({ providerName })).toEqual(["URL_NOT_ALLOWED"]);
  });

  it("refuses a page of another list, and an application that there is not", async () => {
    await call("/me");
    await call("/me");
    await recorded(2);
    const { nextPageToken: pageToken } = await list({ pageSize: 1 });
    await expect(list({ pageToken, errorType: "API_ERROR" })).rejects.toMatchObject({ code: Code.InvalidArgument });
    const ofNone = madePageToken([application.publicKey, "", "", "", "", undefined, undefined], ["-1", "0"]);
    for (const made of ["x", ofNone]) {
      await expect(list({ pageToken: made })).rejects.toMatchObject({ code: Code.InvalidArgument });
    }
    await expect(list({ publicKey: "nobody-at-all" })).rejects.toMatchObject({ code: Code.NotFound });
  });
});

it("lists what there is behind a made place beyond the calls of a block", async () => {
  await call("/me");
  await recorded(1);
  const sequence = await harness.store.calls.lastSequence();
  const pageToken = madePageToken(
    [application.publicKey, "", "", "", "", undefined, undefined],
    [String(sequence), "999999999999999"],
  );
  expect(pathsOf((await list({ pageToken })).callRecords)).toEqual(["/me"]);
});

it("leaves a block out that it cannot read, with one line in the log, and lists the others", async () => {
  const callId = await call("/me");
  await recorded(1);
  const whole = { applicationId: application.id, count: 1, firstAt: Date.now(), lastAt: Date.now() };
  const own = JSON.stringify({ kind: [], own: ["callId", "startedAt"], kinds: [[]], from: 0, calls: [[0, callId, 1]] });
  // As an early version wrote them, as a damaged file has them, and with less than every call has.
  for (const calls of [`[["${callId}",1]]`, `{"${callId}`, own])
    await harness.store.calls.append([{ ...whole, calls }], 1000);
  const faults = () => harness.logLines.filter((line) => line.includes('"where":"call records"')).length;
  const before = faults();
  for (const more of [{}, {}, { publicKey: "" }]) expect(pathsOf((await list(more)).callRecords)).toContain("/me");
  expect((await list()).callRecords).toHaveLength(1);
  await operator()
    .getCallRecord({ callId })
    .catch((error: unknown) => expect(error).toMatchObject({ code: Code.NotFound }));
  expect(faults() - before).toBe(3);
});

describe("GetCallRecord", () => {
  it("tells a record that cannot be read from one that is not there", async () => {
    const there = await call("/me");
    const [{ callId = "" } = {}] = await recorded(1);
    expect(callId).toBe(there);
    const damaged = there.replace(/.$/, (digit) => (digit === "0" ? "1" : "0"));
    expect(await failure(operator().getCallRecord({ callId: damaged }))).toMatchObject({ code: "NotFound" });
    const at = Date.now();
    const block = { applicationId: application.id, count: 1, firstAt: at - 60_000, lastAt: at };
    await harness.store.calls.append([{ ...block, calls: `${damaged} and no JSON` }], 1000);
    expect(await failure(operator().getCallRecord({ callId: damaged }))).toMatchObject({ code: "DataLoss" });
    expect((await list()).callRecords).toMatchObject([{ callId }]);
  });

  it("shows one call, and what was captured to operators alone", async () => {
    const start = Date.now();
    const { endTime } = await operator().startCallCapture({ publicKey: application.publicKey });
    const endsAt = Number(endTime?.seconds) * 1000 + (endTime?.nanos ?? 0) / 1e6;
    expect(endsAt - start).toBeGreaterThanOrEqual(600_000);
    expect(endsAt - Date.now()).toBeLessThanOrEqual(600_000);
    if (process.env["TEST_DATABASE"] === "postgres") await new Promise((resolve) => setTimeout(resolve, 1100));
    const callId = await call("/echo/x?access_token=CANARY");
    await recorded(1);
    const get = (token: string) => clientOf(token).getCallRecord({ callId });
    expect(await get(ADMIN_TOKENS.operator)).toMatchObject({
      callId,
      captured: true,
      capture: {
        request: { sent: true, url: `${harness.sandbox.origin}/echo/x?access_token=[masked]` },
        response: { statusCode: 200, body: { truncated: false } },
      },
    });
    const { capture } = await get(ADMIN_TOKENS.readOnly);
    expect(capture).toBeUndefined();
    await damageCaptures();
    expect(await get(ADMIN_TOKENS.operator)).toMatchObject({
      ...{ callId, captured: true, userId: "ada" },
      captureProblem: expect.stringMatching(/^The capture cannot be opened: /),
    });
    await operator().stopCallCapture({ publicKey: application.publicKey });
    expect((await harness.store.applications.findByPublicKey(application.publicKey))?.captureUntil).toBe(0);
  });

  it("says when there is none", async () => {
    for (const callId of ["0190a0a0-0000-7000-8000-000000000000", "x"]) {
      await expect(operator().getCallRecord({ callId })).rejects.toMatchObject({ code: Code.NotFound });
    }
    await expect(operator().getCallRecord({})).rejects.toMatchObject({ code: Code.InvalidArgument });
  });
});

describe("a time of a request", () => {
  it.each([-(2n ** 63n), -62_135_596_801n, 253_402_300_800n, 2n ** 63n - 1n])(
    "is refused outside of the years that a timestamp can have: %s seconds",
    async (seconds) => {
      const { audit } = createAdminClients(harness, "grpc");
      const time = { seconds, nanos: 0 };
      const seen = [
        await failure(operator().listCallRecords({ startTime: time })),
        await failure(operator().listCallRecords({ endTime: time })),
        await failure(audit.listAuditRecords({ beforeTime: time })),
      ];
      expect(seen.map(({ code, field }) => [code, field])).toEqual(
        ["start_time", "end_time", "before_time"].map((field) => ["InvalidArgument", field]),
      );
    },
  );
});

describe("StartCallCapture", () => {
  it("takes whole minutes up to an hour, of operators, and is in the audit trail", async () => {
    const { publicKey } = application;
    for (const seconds of [0n, 59n, 61n, 3660n, -60n]) {
      await expect(operator().startCallCapture({ publicKey, duration: { seconds } })).rejects.toMatchObject({
        code: Code.InvalidArgument,
      });
    }
    await expect(clientOf(ADMIN_TOKENS.readOnly).startCallCapture({ publicKey })).rejects.toMatchObject({
      code: Code.PermissionDenied,
    });
    await operator().startCallCapture({ publicKey, duration: { seconds: 3600n } });
    const { audit } = createAdminClients(harness);
    const { auditRecords } = await audit.listAuditRecords({ publicKey, pageSize: 2 });
    const method = "relay.admin.v1.CallRecordService.StartCallCapture";
    const resource = `applications/${publicKey}`;
    expect(auditRecords).toMatchObject([
      { method, resource, outcome: 1, changedFields: ["duration"] },
      { method, resource, outcome: 2 },
    ]);
  });
});

describe("WatchCallRecords", () => {
  it("tells of calls as they end, of every relay on the store, until the client ends", async () => {
    const ending = new AbortController();
    const { publicKey } = application;
    const answers = createAdminClients(harness, "connect", ADMIN_TOKENS.readOnly)
      .callRecords.watchCallRecords({ publicKey, errorType: "API_ERROR" }, { signal: ending.signal })
      [Symbol.asyncIterator]();
    expect((await answers.next()).value).toMatchObject({ callRecords: [] });
    await call("/me");
    await call("/status/404");
    await call("/status/403", { url: peerUrl });
    const seen: CallRecord[] = [];
    while (seen.length < 2) seen.push(...((await answers.next()).value?.callRecords ?? []));
    expect(pathsOf(seen).sort()).toEqual(["/status/403", "/status/404"]);
    expect(seen[0]).toMatchObject({ publicKey, errorType: "API_ERROR" });
    ending.abort();
    await expect(answers.next()).rejects.toMatchObject({ code: Code.Canceled });
  });

  it("says what is wrong with a store that cannot be read, and no more of it", async () => {
    const own = await startHarness();
    mkdirSync(join(own.folder, "relay.db-calls"));
    const answers = createAdminClients(own, "grpc").callRecords.watchCallRecords({})[Symbol.asyncIterator]();
    const failed = await answers.next().catch((error: unknown) => error);
    expect(failed).toMatchObject({ code: Code.Unavailable, rawMessage: expect.stringContaining("cannot be opened") });
    expect(String(failed)).not.toContain(own.folder);
    await own.close();
  });

  it("ends when the relay stops", async () => {
    const own = await startHarness();
    const answers = createAdminClients(own, "grpc").callRecords.watchCallRecords({})[Symbol.asyncIterator]();
    await answers.next();
    const ended = answers.next();
    await own.closeRelay();
    expect(await ended).toMatchObject({ done: true });
    await own.close();
  });
});
