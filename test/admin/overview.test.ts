import { setImmediate } from "node:timers/promises";
import { createClient } from "@connectrpc/connect";
import { createConnectTransport } from "@connectrpc/connect-node";
import { afterAll, beforeAll, describe, expect, it, vi } from "vitest";
import {
  Attention_Kind as Kind,
  OverviewService,
  GetFiguresRequest_Period as Period,
} from "../../gen/relay/admin/v1/overview_pb.js";
import { createOverviewService, nodeAttention } from "../../src/admin/overview-service.js";
import type { AdminOptions } from "../../src/admin/standard-methods.js";
import { createCallers } from "../support/callers.js";
import { ADMIN_TOKENS, type Harness, startHarness, type TestApplication } from "../support/harness.js";
import { FAILING, failRefresh } from "../support/refresh-failure.js";
import { unhandledRejectionsOf } from "../support/unhandled-rejections.js";
import { startWebhookReceiver } from "../support/webhook-receiver.js";
import { createAdminClients } from "./admin-bed.js";
import { bearer } from "./bearer.js";
import { failure } from "./failure.js";

let harness: Harness;
let application: TestApplication;
beforeAll(async () => {
  harness = await startHarness();
  application = await harness.createApplication();
  await harness.connect(application, "ada");
});
afterAll(() => harness.close());

function overview() {
  const transport = createConnectTransport({
    ...{ baseUrl: harness.adminUrl, httpVersion: "1.1" as const, useBinaryFormat: false },
    ...bearer(ADMIN_TOKENS.readOnly),
  });
  return createClient(OverviewService, transport);
}

async function call(path: string, publicKey = application.publicKey): Promise<void> {
  const [[, rest] = []] = createCallers(harness.url);
  const description = { url: harness.sandbox.origin + path, method: "GET" };
  await rest?.({ providerName: "sandbox", userId: "ada", publicKey, call: description });
}

describe("GetFigures", () => {
  it("counts calls and errors, and says how long each part took, of all, an application and a provider", async () => {
    const other = await harness.createApplication();
    for (const path of ["/me", "/me", "/status/404"]) await call(path);
    await call("/me", other.publicKey);
    await vi.waitFor(async () => expect((await overview().getFigures({})).total?.callCount).toBe(4n), {
      timeout: 20_000,
    });
    const all = await overview().getFigures({ period: Period.HOUR });
    expect(all.total).toMatchObject({ callCount: 4n, errorCount: 2n });
    const inMs = (duration?: { seconds: bigint; nanos: number }) =>
      Number(duration?.seconds) * 1000 + (duration?.nanos ?? 0) / 1e6;
    const { p50, p95, p99 } = all.total?.total ?? {};
    expect(inMs(p50)).toBeGreaterThan(0);
    expect(inMs(p95)).toBeGreaterThanOrEqual(inMs(p50));
    expect(inMs(p99)).toBeGreaterThanOrEqual(inMs(p95));
    expect(inMs(all.total?.provider?.p99)).toBeGreaterThan(0);
    expect(inMs(all.total?.queue?.p50)).toBeLessThan(inMs(p50));
    expect(all.points.reduce((sum, { figures }) => sum + (figures?.callCount ?? 0n), 0n)).toBe(4n);
    expect([
      all.pointDuration?.seconds,
      (await overview().getFigures({ period: Period.WEEK })).pointDuration?.seconds,
    ]).toEqual([60n, 3600n]);
    expect(all.applications.map(({ publicKey, figures }) => [publicKey, figures?.callCount])).toEqual([
      [application.publicKey, 3n],
      [other.publicKey, 1n],
    ]);
    expect(all.providers.map(({ providerName, figures }) => [providerName, figures?.callCount])).toEqual([
      ["sandbox", 4n],
    ]);
    const own = await overview().getFigures({ publicKey: other.publicKey });
    expect([own.total?.callCount, own.total?.errorCount, own.applications, own.providers]).toEqual([1n, 1n, [], []]);
    expect((await overview().getFigures({ providerName: "sandbox", period: Period.WEEK })).total?.callCount).toBe(4n);
    expect((await overview().getFigures({ providerName: "github" })).total?.callCount).toBe(0n);
    const pair = { publicKey: other.publicKey, providerName: "sandbox" };
    for (const period of [Period.HOUR, Period.WEEK])
      expect((await overview().getFigures({ ...pair, period })).total).toMatchObject({ callCount: 1n, errorCount: 1n });
    expect((await overview().getFigures({ ...pair, providerName: "github" })).total?.callCount).toBe(0n);
    const unknown = overview().getFigures({ publicKey: "nobody's", providerName: "sandbox" });
    expect(await failure(unknown)).toMatchObject({ code: "NotFound" });
    await harness.store.applications.delete(other.publicKey);
    expect((await overview().getFigures({})).applications.map(({ publicKey }) => publicKey)).toEqual([
      application.publicKey,
      "",
    ]);
  });
});

describe("GetOverview", () => {
  /** The machine of a test may be nearly full, and its Node.js old. */
  const ofTheStore = ({ kind }: { kind: Kind }) => kind !== Kind.DISK_NEARLY_FULL && kind !== Kind.NODE_ENDS;
  const kinds = async () => (await overview().getOverview({})).attentions.map(({ kind }) => kind);

  it("says nothing while nothing needs attention, and what version is running", async () => {
    const told = await overview().getOverview({});
    expect(told.attentions.filter(ofTheStore)).toEqual([]);
    expect([told.version, told.nodeVersion]).toEqual([expect.stringMatching(/^\d/), process.versions.node]);
  });

  it("names what fails: connections, clients, events and an old key", async () => {
    const own = await harness.createApplication();
    const key = { applicationId: own.id, userId: "failing", providerName: "sandbox" };
    await harness.connect(own, key.userId, { refreshToken: "r" });
    await failRefresh(harness.store, key);
    await harness.connect(own, "ended");
    const ended = (await harness.store.connections.find({ ...key, userId: "ended" })) ?? expect.unreachable();
    await harness.store.connections.requireReauthorization(ended, "invalid_grant", Date.now());
    await harness.putClient(own);
    const client = (await harness.store.oauthClients.find(own.id, "sandbox")) ?? expect.unreachable();
    await harness.store.oauthClients.noteRefused(client, FAILING.since);
    const receiver = await startWebhookReceiver();
    receiver.play = (response) => response.writeHead(410).end();
    const { webhooks } = createAdminClients(harness);
    await webhooks.putWebhook({ webhook: { publicKey: own.publicKey, uri: receiver.url } });
    await webhooks.sendTestEvent({ publicKey: own.publicKey });
    await receiver.arrived(1);
    await vi.waitFor(async () => expect(await kinds()).toContain(Kind.EVENTS_GIVEN_UP));
    await receiver.close();
    const { attentions } = await overview().getOverview({});
    expect(attentions.filter(ofTheStore)).toMatchObject([
      { kind: Kind.CLIENT_REFUSED, publicKey: own.publicKey, providerName: "sandbox" },
      { kind: Kind.REFRESH_FAILING, count: 1 },
      { kind: Kind.REAUTHORIZATION_REQUIRED, count: 1 },
      { kind: Kind.EVENTS_GIVEN_UP, count: 1 },
    ]);
    const failing = await createAdminClients(harness).connections.listConnections({ refreshFailing: true });
    expect(failing.connections.map(({ userId }) => userId)).toEqual(["failing"]);
  });

  it("fails alone when the store fails meanwhile: no rejection is left that would end the process", async () => {
    const own = await harness.createApplication();
    await harness.putClient(own);
    const client = (await harness.store.oauthClients.find(own.id, "sandbox")) ?? expect.unreachable();
    await harness.store.oauthClients.noteRefused(client, FAILING.since);
    const applications = { ...harness.store.applications, publicKeyOf: () => Promise.reject(new Error("lost")) };
    const store = { ...harness.store, applications };
    const told = { store, sealer: harness.sealer, now: Date.now, problems: () => [], diskRoom: () => setImmediate() };
    const { getOverview } = createOverviewService(told as unknown as AdminOptions);
    const unhandled = await unhandledRejectionsOf(() =>
      expect(getOverview?.({} as never, {} as never)).rejects.toThrow("lost"),
    );
    expect(unhandled).toEqual([]);
  });
});

describe("nodeAttention()", () => {
  const DAY_MS = 86_400_000;
  const at = (days: number) => Date.parse("2027-04-30") + days * DAY_MS;

  it.each([
    ["long before the end of its line", "22.12.0", -91, []],
    ["90 days before it", "22.12.0", -90, ["Support for Node.js 22 ends on 2027-04-30. Upgrade to a supported line."]],
    ["past it", "22.99.1", 1, ["Support for Node.js 22 ended on 2027-04-30. Upgrade to a supported line."]],
    ["of a line whose end is not known", "99.0.0", 9999, []],
    ["of a line that goes on", "24.1.0", 1, []],
  ])("says of a version %s what it has to", (_what, version, days, messages) => {
    expect(nodeAttention(version, at(days)).map(({ message }) => message)).toEqual(messages);
  });
});
