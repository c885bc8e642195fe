import { Agent, request } from "undici";
import { afterAll, beforeAll, beforeEach, expect, it, onTestFinished, vi } from "vitest";
import type { Service } from "../../src/app/server.js";
import type { Connection } from "../../src/oauth/connection.js";
import { connectRaw } from "../http/support.js";
import { startSecondRelay } from "../server/second-relay.js";
import { type Harness, startHarness, type TestApplication } from "../support/harness.js";
import { answer, type RawProvider, startRawProvider } from "../support/raw-provider.js";

// From the first moment of a stop no refresh was begun, while calls had ten seconds more: those that needed a new token
// were answered REFRESH_UNAVAILABLE, or with the provider's 401, where any other relay would have refreshed it.

const GRACE_MS = 60_000;
let harness: Harness;
let provider: RawProvider;
let application: TestApplication;
let service: Service;
let refuse: (() => void) | undefined;

beforeAll(async () => {
  // Refuses the first call when it is told to, and takes those after it.
  provider = await startRawProvider((socket) => {
    const taken = answer("{}", "Content-Type: application/json");
    if (refuse !== undefined) return void socket.write(taken);
    refuse = () => void socket.write("HTTP/1.1 401 Unauthorized\r\nContent-Length: 0\r\n\r\n");
  });
  harness = await startHarness({
    definitionsFor: (origin) => [
      { name: "raw", apiOrigins: [provider.origin], oauth2: { tokenEndpoint: `${origin}/oauth/token` } },
    ],
  });
  application = await harness.createApplication();
  for (const name of ["sandbox", "raw"]) await harness.putClient(application, name);
  await connect("alive", { expiresAt: Date.now() + 3_600_000 });
});
afterAll(async () => {
  await harness.close();
  await provider.close();
});

beforeEach(async () => {
  service = await startSecondRelay(harness);
});

function connect(userId: string, options: { providerName?: string; expiresAt: number }) {
  const { refresh_token: refreshToken } = harness.sandbox.issueToken();
  return harness.connect(application, userId, { refreshToken, ...options });
}

const targetOf = (userId: string, providerName = "sandbox") =>
  `/oauth/method/${providerName}/call?user_id=${userId}&public_key=${application.publicKey}`;

/** A connection that rests: in the quiet time the relay answers one call on it, and then closes it. */
async function restingConnection(): Promise<Agent> {
  const agent = new Agent({ connections: 1 });
  onTestFinished(() => agent.destroy());
  expect(await call("alive", agent)).toBe("success");
  return agent;
}

/** The errorType of the row, or `success`. */
async function call(userId: string, agent: Agent, providerName = "sandbox"): Promise<string> {
  const url = providerName === "raw" ? provider.origin : `${harness.sandbox.origin}/me`;
  const body = JSON.stringify({ url, method: "GET" });
  const answered = await request(service.url + targetOf(userId, providerName), {
    method: "POST",
    body,
    dispatcher: agent,
  });
  const { rows } = (await answered.body.json()) as { rows: [{ pincStatus: string; errorType?: string }] };
  return rows[0].errorType ?? rows[0].pincStatus;
}

const exchanges = () => harness.sandbox.requests.filter(({ target }) => target === "/oauth/token").length;

it("refreshes the token for a call on a connection that is kept in the quiet time", async () => {
  await connect("quiet", { expiresAt: 1 });
  const agent = await restingConnection();
  const closed = service.close(GRACE_MS, GRACE_MS);
  expect(await call("quiet", agent)).toBe("success");
  await closed;
});

it("refreshes the token for a call whose body was still to come", async () => {
  await connect("late", { expiresAt: 1 });
  const { socket, received } = await connectRaw(Number(new URL(service.url).port));
  const body = JSON.stringify({ url: `${harness.sandbox.origin}/me`, method: "GET" });
  const fields = `Host: a\r\nExpect: 100-continue\r\nContent-Length: ${body.length}`;
  socket.write(`POST ${targetOf("late")} HTTP/1.1\r\n${fields}\r\n\r\n`);
  await received("100 Continue");
  const closed = service.close(GRACE_MS);
  socket.write(body);
  expect(await received("}]}")).toContain('"pincStatus":"success"');
  await closed;
});

it("refreshes the token and repeats the call when the provider refuses it then", async () => {
  await connect("refused", { providerName: "raw", expiresAt: Date.now() + 3_600_000 });
  const called = call("refused", await restingConnection(), "raw");
  await provider.seen(1);
  const closed = service.close(GRACE_MS);
  refuse?.();
  expect(await called).toBe("success");
  await closed;
});

it("refreshes no token that is still good, and none at all once half of the time is over", async () => {
  for (const userId of ["first", "second"]) await connect(userId, { expiresAt: 1 });
  const now = Date.now();
  await connect("due", { expiresAt: now + 30_000 });
  const key = { applicationId: application.id, userId: "due", providerName: "sandbox" };
  const row = (await harness.store.connections.find(key)) as Connection;
  await harness.store.connections.put({ ...row, obtainedAt: now - 3_600_000 }, now);
  const [one, two, three] = [await restingConnection(), await restingConnection(), await restingConnection()];
  vi.useFakeTimers({ toFake: ["setTimeout", "clearTimeout"] });
  onTestFinished(() => void vi.useRealTimers());
  const closed = service.close(GRACE_MS, GRACE_MS);
  const before = exchanges();
  expect(await call("due", one)).toBe("success");
  vi.advanceTimersByTime(GRACE_MS - 1);
  expect(await call("first", two)).toBe("success");
  expect(exchanges() - before).toBe(1);
  vi.advanceTimersByTime(1);
  expect(await call("second", three)).toBe("REFRESH_UNAVAILABLE");
  expect(exchanges() - before).toBe(1);
  await closed;
});
