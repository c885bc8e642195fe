import { afterAll, beforeAll, describe, expect, it } from "vitest";
import {
  RefreshAttempt_Cause as Cause,
  RefreshAttempt_Outcome as Outcome,
  Connection_State as State,
} from "../../gen/relay/admin/v1/connection_pb.js";
import { ADMIN_TOKENS, type Harness, startHarness, type TestApplication } from "../support/harness.js";
import { FAILING, failRefresh } from "../support/refresh-failure.js";
import { type AdminClients, createAdminClients } from "./admin-bed.js";
import { failure } from "./failure.js";

let harness: Harness;
let application: TestApplication;
let admin: AdminClients;
beforeAll(async () => {
  harness = await startHarness();
  application = await harness.createApplication();
  await harness.putClient(application);
  admin = createAdminClients(harness);
});
afterAll(() => harness.close());

/** Stores tokens of the sandbox, of which the first is good for an hour. */
async function connected(userId: string) {
  const key = { publicKey: application.publicKey, userId, providerName: "sandbox" };
  const tokens = harness.sandbox.issueToken();
  await admin.connections.putConnection({ ...key, tokenResponse: JSON.stringify(tokens) });
  return key;
}

const recordsOf = async (userId: string) =>
  (await admin.audit.listAuditRecords({ publicKey: application.publicKey })).auditRecords
    .filter(({ resource }) => resource.includes(`/users/${userId}/`))
    .map(({ method, actor }) => [method.replace("relay.admin.v1.", ""), actor]);

describe("RefreshConnection", () => {
  it("gets a new token although the old one is good, and writes down who asked for it", async () => {
    const key = await connected("ada");
    const before = await admin.connections.getConnection(key);
    const { connection, problem } = await admin.connections.refreshConnection(key);
    expect([problem, before.refreshTime, connection?.state]).toEqual(["", undefined, State.ACTIVE]);
    expect(connection?.refreshTime).toBeDefined();
    const [attempt, ...others] = connection?.refreshAttempts ?? [];
    expect(attempt).toMatchObject({ outcome: Outcome.REFRESHED, cause: Cause.REQUESTED, answer: "" });
    expect(attempt?.endTime?.seconds).toBeGreaterThan(0);
    expect([others, before.refreshAttempts]).toEqual([[], []]);
    expect((await admin.connections.getConnection(key)).refreshAttempts).toEqual([attempt]);
    const { connections } = await admin.connections.listConnections({ publicKey: application.publicKey });
    expect(connections.map(({ refreshAttempts }) => refreshAttempts)).toEqual([[]]);
    const stored = { applicationId: application.id, userId: "ada", providerName: "sandbox" };
    expect((await harness.store.connections.find(stored))?.version).toBe(2);
    expect(await recordsOf("ada")).toEqual([
      ["ConnectionService.RefreshConnection", "alice"],
      ["ConnectionService.PutConnection", "alice"],
    ]);
  });

  it("tries before the time of the next try, which a call waits for", async () => {
    const key = await connected("bea");
    await failRefresh(harness.store, { applicationId: application.id, userId: "bea", providerName: "sandbox" });
    const failing = await admin.connections.getConnection(key);
    expect([failing.refreshFailureCount, failing.refreshFailingTime?.seconds]).toEqual([
      1,
      BigInt(FAILING.since / 1000),
    ]);
    const { connection, problem } = await admin.connections.refreshConnection(key);
    expect([problem, connection?.refreshFailureCount]).toEqual(["", 0]);
  });

  it("answers with what the provider said, and the connection as it stands then", async () => {
    const key = await connected("cleo");
    const other = await harness.createApplication();
    await harness.putClient(other, "sandbox", { client_secret: "wrong" });
    const wrong = { ...key, publicKey: other.publicKey };
    const tokens = harness.sandbox.issueToken();
    await admin.connections.putConnection({ ...wrong, tokenResponse: JSON.stringify(tokens) });
    const { connection, problem } = await admin.connections.refreshConnection(wrong);
    expect(problem).toContain("refuses the application's OAuth client");
    expect(connection).toMatchObject({ refreshFailureCount: 1, lastRefreshFailure: "invalid_client" });
    expect(connection?.refreshAttempts).toMatchObject([{ outcome: Outcome.FAILED, answer: "invalid_client" }]);
    // The next one asks the provider again, whatever was found before.
    await harness.putClient(other);
    expect((await admin.connections.refreshConnection(wrong)).problem).toBe("");
  });

  it("refuses what no refresh can help, and asks and writes down nothing then", async () => {
    await harness.connect(application, "dora");
    const key = { publicKey: application.publicKey, userId: "dora", providerName: "sandbox" };
    expect(await failure(admin.connections.refreshConnection(key))).toMatchObject({
      code: "FailedPrecondition",
      message: expect.stringContaining("no refresh token"),
    });
    expect(await recordsOf("dora")).toEqual([]);
    const nobody = { ...key, userId: "nobody" };
    expect(await failure(admin.connections.refreshConnection(nobody))).toMatchObject({ code: "NotFound" });
  });

  it("is for operators alone", async () => {
    const key = await connected("eva");
    const { connections } = createAdminClients(harness, "connect", ADMIN_TOKENS.readOnly);
    expect(await failure(connections.refreshConnection(key))).toMatchObject({ code: "PermissionDenied" });
  });
});
