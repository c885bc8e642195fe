import { afterAll, beforeAll, beforeEach, describe, expect, it, vi } from "vitest";
import { postRest } from "../support/callers.js";
import { type Harness, startHarness, type TestApplication } from "../support/harness.js";
import { startTokenEndpoint, type TestTokenEndpoint } from "../support/token-endpoint.js";
import { startWebhookReceiver, verified, type WebhookReceiver } from "../support/webhook-receiver.js";
import { putEndpoint } from "./webhook-bed.js";

const PROVIDER = "refreshed";
let harness: Harness;
let endpoint: TestTokenEndpoint;
let receiver: WebhookReceiver;
let application: TestApplication;
let secret: string;

beforeAll(async () => {
  endpoint = await startTokenEndpoint(() => harness.sandbox.origin);
  harness = await startHarness({
    definitionsFor: (sandbox) => [{ name: PROVIDER, apiOrigins: [sandbox], oauth2: { tokenEndpoint: endpoint.url } }],
  });
  await harness.startPeer();
});

beforeEach(async () => {
  receiver = await startWebhookReceiver();
  application = await harness.createApplication();
  secret = await putEndpoint(harness.store, harness.sealer, application.id, `${receiver.url}?key=canary-query`);
  return async () => {
    await harness.store.applications.delete(application.publicKey);
    await receiver.close();
  };
});

afterAll(async () => {
  await harness.close();
  await endpoint.close();
});

/** What has arrived when it is so many, in order, as the application reads it. */
async function events(count: number) {
  return (await receiver.arrived(count)).map((event) => verified(secret, event));
}

/** What was logged of an application's events. */
const linesOf = ({ id }: TestApplication) =>
  harness.logLines
    .filter((line) => line.includes('"msg":"webhook"') && line.includes(id))
    .map((line) => JSON.parse(line) as Record<string, unknown>);

/** Both relays look for events once a second. */
const SOON = { timeout: 15_000 };
const nothingWaits = () =>
  vi.waitFor(async () => expect((await harness.store.webhooks.backlog(application.id)).waiting).toBe(0), SOON);
const logged = (of: TestApplication) => vi.waitFor(() => expect(linesOf(of)).toHaveLength(1), SOON);

describe("an application with a webhook", () => {
  it("is told that a user has connected, connected again, and that a connection was deleted", async () => {
    const key = { applicationId: application.id, userId: "ada", providerName: "sandbox" };
    const tokens = [await harness.connect(application, "ada"), await harness.connect(application, "ada")];
    await harness.store.connections.delete(key, Date.now());
    const told = await events(3);
    expect(told.map(({ type }) => type)).toEqual(["connection.created", "connection.created", "connection.deleted"]);
    for (const { data } of told) {
      expect(data).toEqual({ public_key: application.publicKey, user_id: "ada", provider_name: "sandbox" });
    }
    for (const { body, headers } of receiver.received) {
      for (const token of tokens) expect(body + JSON.stringify(headers)).not.toContain(token);
    }
  });

  it("is told once by two relays", async () => {
    for (let user = 0; user < 20; user += 1) await harness.connect(application, `u${user}`);
    await nothingWaits();
    const users = receiver.received.map(({ body }) => JSON.parse(body).data.user_id);
    expect(users).toEqual(Array.from({ length: 20 }, (_, user) => `u${user}`));
  });

  it("is told once that a user must connect again, and why", async () => {
    await harness.putClient(application, PROVIDER);
    const options = { providerName: PROVIDER, refreshToken: "canary-refresh-token-that-nobody-knows", expiresAt: 1 };
    await harness.connect(application, "bob", options);
    const call = { url: `${harness.sandbox.origin}/me`, method: "GET" };
    const request = { providerName: PROVIDER, userId: "bob", publicKey: application.publicKey, call };
    for (let count = 0; count < 2; count += 1) {
      expect((await postRest(harness.url, request)).text).toContain("REAUTHORIZATION_REQUIRED");
    }
    expect((await events(2))[1]).toMatchObject({
      type: "connection.reauthorization_required",
      data: { user_id: "bob", provider_name: PROVIDER, reason: "invalid_grant" },
    });
    await nothingWaits();
    expect(receiver.received).toHaveLength(2);
  });

  it("is told nothing of another application's users", async () => {
    const other = await harness.createApplication();
    await harness.connect(other, "eve");
    await harness.connect(application, "ada");
    await nothingWaits();
    expect(receiver.received.map(({ body }) => JSON.parse(body).data.user_id)).toEqual(["ada"]);
  });
});

describe("the log", () => {
  it("has a line for each attempt, and neither secret, token nor address in any", async () => {
    const other = await harness.createApplication();
    await putEndpoint(harness.store, harness.sealer, other.id, `${receiver.url}?key=canary-query`);
    receiver.play = (response, { body }) => response.writeHead(body.includes("ada") ? 500 : 410).end("canary-answer");
    const tokens = [await harness.connect(application, "ada"), await harness.connect(other, "gone")];
    await Promise.all([logged(application), logged(other)]);
    const line = { eventId: expect.stringMatching(/^msg_/), type: "connection.created", attempt: 1 };
    expect([...linesOf(application), ...linesOf(other)]).toMatchObject([
      { ...line, applicationId: application.id, level: 40, outcome: "retry", statusCode: 500 },
      { ...line, applicationId: other.id, level: 50, outcome: "givenUp", statusCode: 410 },
    ]);
    const text = harness.logLines.join("");
    const signatures = receiver.received.map(({ headers }) => String(headers["webhook-signature"]).slice(3));
    for (const hidden of [secret.slice(6), ...tokens, ...signatures, "canary", "/hook", '"ada"']) {
      expect(text).not.toContain(hidden);
    }
  });

  it("names what kept an event from being sent", async () => {
    await putEndpoint(harness.store, harness.sealer, application.id, "https://10.1.2.3/hook");
    await harness.connect(application, "ada");
    await logged(application);
    expect(linesOf(application)).toMatchObject([{ error: "PROVIDER_UNREACHABLE", cause: "ADDRESS_REFUSED private" }]);
    expect(harness.logLines.join("")).not.toContain("10.1.2.3");
  });
});

describe("a receiver whose answer is large", () => {
  it("is not listened to, and told again", async () => {
    receiver.play = (response) => response.writeHead(200).end(Buffer.alloc(300 * 1024));
    await harness.connect(application, "ada");
    await logged(application);
    expect(linesOf(application)).toMatchObject([{ outcome: "retry", error: "RESPONSE_TOO_LARGE" }]);
  });
});

describe("a receiver that hangs", () => {
  beforeEach(() => {
    receiver.play = () => {};
  });

  it("does not hold up a call", async () => {
    await harness.connect(application, "ada");
    await receiver.arrived(1);
    const call = { url: `${harness.sandbox.origin}/me`, method: "GET" };
    const request = { providerName: "sandbox", userId: "ada", publicKey: application.publicKey, call };
    expect((await postRest(harness.url, request)).text).toContain('"pincStatus":"success"');
    expect(linesOf(application)).toEqual([]);
  });

  it("does not keep a relay from stopping in time", async () => {
    const single = await startHarness();
    const told = await single.createApplication();
    await putEndpoint(single.store, single.sealer, told.id, receiver.url);
    await single.connect(told, "ada");
    await receiver.arrived(1);
    await single.close();
    const last = JSON.parse(single.logLines.at(-1) ?? "{}");
    // At its deadline it would be a timeout.
    expect(last).toMatchObject({ msg: "webhook", outcome: "retry", error: "PROVIDER_UNREACHABLE" });
  });
});
