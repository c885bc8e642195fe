import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { startSecondRelay } from "../server/second-relay.js";
import { createCallers } from "../support/callers.js";
import { type Harness, startHarness, type TestApplication } from "../support/harness.js";

let harness: Harness;

beforeAll(async () => {
  harness = await startHarness();
});

afterAll(() => harness.close());

async function call(application: TestApplication, userId: string, protocol = 0) {
  const [, caller] = createCallers(harness.url)[protocol] as never as [
    string,
    (call: object) => Promise<{ errorType?: string }>,
  ];
  const url = `${harness.sandbox.origin}/me`;
  return caller({ providerName: "sandbox", userId, publicKey: application.publicKey, call: { url, method: "GET" } });
}

describe("rate limits of an application", () => {
  it("refuse its calls above the number, over every surface, and no other application's", async () => {
    const limited = await harness.createApplication({ callsPerMinute: 3 });
    const free = await harness.createApplication();
    for (const application of [limited, free]) {
      await harness.connect(application, "a");
      await harness.connect(application, "b");
    }
    for (const user of ["a", "b", "a"]) expect(await call(limited, user)).not.toHaveProperty("errorType");
    const before = harness.sandbox.requests.length;
    for (const protocol of [0, 1, 2, 3, 4]) {
      expect(await call(limited, "b", protocol)).toMatchObject({
        errorType: "RATE_LIMITED",
        statusCode: 429,
        inernalError: expect.stringMatching(/in [1-9]\d? s\./),
      });
    }
    expect(harness.sandbox.requests.length).toBe(before);
    expect(await call(free, "a")).not.toHaveProperty("errorType");
  });

  it.each(["call", "stream"])("say in Retry-After how long to wait where the status of /%s is 429", async (method) => {
    const { url } = await startSecondRelay(harness, { RELAY_HTTP_STATUS: "mirror" });
    const allowedOrigins = ["https://app.example"];
    const application = await harness.createApplication({ callsPerMinute: 1, allowedOrigins });
    await harness.connect(application, "a");
    const route = `/oauth/method/sandbox/${method}?user_id=a&public_key=${application.publicKey}`;
    const body = JSON.stringify({ url: `${harness.sandbox.origin}/me`, method: "GET" });
    const send = () => fetch(url + route, { method: "POST", body, headers: { origin: "https://app.example" } });
    const [first, second] = [await send(), await send()];
    expect(second.headers.get("access-control-expose-headers")).toContain("retry-after");
    expect([first.status, first.headers.get("retry-after"), second.status]).toEqual([200, null, 429]);
    expect(await second.text()).toContain(` in ${second.headers.get("retry-after")} s.`);
  });

  it("count each connection by itself when they are set for connections", async () => {
    const application = await harness.createApplication({ connectionCallsPerMinute: 1 });
    await harness.connect(application, "a");
    await harness.connect(application, "b");
    expect(await call(application, "a")).not.toHaveProperty("errorType");
    expect(await call(application, "a")).toHaveProperty("errorType", "RATE_LIMITED");
    expect(await call(application, "b")).not.toHaveProperty("errorType");
    const key = { applicationId: application.id, userId: "a", providerName: "sandbox" };
    await harness.store.connections.delete(key, Date.now());
    await harness.connect(application, "a");
    expect(await call(application, "a")).toHaveProperty("errorType", "RATE_LIMITED");
  });

  it("are not counted for callers that are refused anyway", async () => {
    const application = await harness.createApplication({ callerAuth: "PRIVATE_KEY", callsPerMinute: 1 });
    await harness.connect(application, "a");
    for (const _ of [1, 2, 3]) expect(await call(application, "a")).toHaveProperty("errorType", "CALLER_NOT_ALLOWED");
  });
});
