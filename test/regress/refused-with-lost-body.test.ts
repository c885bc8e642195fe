import { randomUUID } from "node:crypto";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { createCallers } from "../support/callers.js";
import { type Harness, startHarness, type TestApplication } from "../support/harness.js";
import { answer, type RawProvider, startRawProvider } from "../support/raw-provider.js";
import { createStreamCallers } from "../support/stream-callers.js";

const FRESH = "FRESH_0123456789abcdefghijklmnop";
const MAX_BYTES = 65_536;
const REFUSAL = 'HTTP/1.1 401 No\r\nWWW-Authenticate: Bearer error="invalid_token"\r\n';

/** Answers whose status and fields can be read, and whose bodies cannot. */
const REFUSALS: Readonly<Record<string, readonly [bytes: string, errorType: string]>> = {
  "that is not what its coding says": [
    `${REFUSAL}Content-Encoding: gzip\r\nContent-Length: 2\r\n\r\n{}`,
    "PROVIDER_RESPONSE_INVALID",
  ],
  "of an unknown coding": [
    `${REFUSAL}Content-Encoding: compress\r\nContent-Length: 2\r\n\r\n{}`,
    "PROVIDER_RESPONSE_INVALID",
  ],
  "of an unknown transfer coding": [
    `${REFUSAL}Transfer-Encoding: gzip, chunked\r\n\r\n0\r\n\r\n`,
    "PROVIDER_RESPONSE_INVALID",
  ],
  "that is cut short": [`${REFUSAL}Content-Length: 20\r\n\r\n{}`, "PROVIDER_RESPONSE_INVALID"],
  "that is too large by its length": [`${REFUSAL}Content-Length: ${MAX_BYTES + 1}\r\n\r\n{}`, "RESPONSE_TOO_LARGE"],
  "that is too large": [`${REFUSAL}\r\n${"a".repeat(MAX_BYTES + 1)}`, "RESPONSE_TOO_LARGE"],
  "that is cut short, without a challenge": [
    "HTTP/1.1 401 No\r\nContent-Length: 20\r\n\r\n{}",
    "PROVIDER_RESPONSE_INVALID",
  ],
};
const LACK_OF_SCOPE = 'WWW-Authenticate: Basic realm="x"\r\nWWW-Authenticate: Bearer error="insufficient_scope"\r\n';
const NAMES = Object.keys(REFUSALS);

let provider: RawProvider;
let harness: Harness;
let application: TestApplication;

beforeAll(async () => {
  provider = await startRawProvider((socket, { head }) => {
    if (head.startsWith("POST /token")) {
      const body = JSON.stringify({ access_token: FRESH, token_type: "Bearer", expires_in: 3600 });
      socket.write(answer(body, "Content-Type: application/json"));
    } else if (head.includes(FRESH)) {
      socket.write(answer('"fresh"', "Content-Type: application/json"));
    } else if (head.startsWith("GET /scope")) {
      socket.write(`HTTP/1.1 401 No\r\n${LACK_OF_SCOPE}Content-Length: 2\r\n\r\n{}`);
    } else {
      const [bytes] = REFUSALS[NAMES[Number(/^GET \/(\d)/.exec(head)?.[1])] as string] as readonly [string, string];
      socket.end(bytes);
    }
  });
  const oauth2 = { tokenEndpoint: `${provider.origin}/token` };
  harness = await startHarness({
    providers: [{ name: "raw", apiOrigins: [provider.origin], oauth2 }],
    env: { RELAY_MAX_RESPONSE_BYTES: String(MAX_BYTES) },
  });
  application = await harness.createApplication();
  await harness.putClient(application, "raw");
});

afterAll(async () => {
  await harness.close();
  await provider.close();
});

function callAfresh(name: string, options: { refreshToken?: string }) {
  return callTo(String(NAMES.indexOf(name)), options);
}

async function callTo(path: string, options: { refreshToken?: string }) {
  const userId = randomUUID();
  await harness.connect(application, userId, { providerName: "raw", ...options });
  const call = { url: `${provider.origin}/${path}`, method: "GET" };
  return { providerName: "raw", userId, publicKey: application.publicKey, call };
}

describe("a refusal of the token with a body", () => {
  it.each(NAMES)("has the token refreshed, on every surface: %s", async (name) => {
    for (const [protocol, caller] of createCallers(harness.url)) {
      const row = await caller(await callAfresh(name, { refreshToken: "one" }));
      expect({ protocol, ...row }).toMatchObject({ protocol, statusCode: 200, data: "fresh" });
    }
    for (const [protocol, caller] of createStreamCallers(harness.url)) {
      const { head, body } = await caller(await callAfresh(name, { refreshToken: "one" }));
      expect([protocol, head?.statusCode, body.toString()]).toEqual([protocol, 200, '"fresh"']);
    }
  });

  it.each(NAMES)("fails as any answer does where there is no other token: %s", async (name) => {
    const [, caller] = createCallers(harness.url)[0] as ReturnType<typeof createCallers>[0];
    const asked = provider.requests.length;
    expect(await caller(await callAfresh(name, {}))).toMatchObject({ errorType: REFUSALS[name]?.[1] });
    expect(provider.requests).toHaveLength(asked + 1);
  });
});

describe("a refusal for lack of scope", () => {
  it("is passed on, also where its second line says so", async () => {
    for (const [protocol, caller] of createCallers(harness.url)) {
      const asked = provider.requests.length;
      const row = await caller(await callTo("scope", { refreshToken: "one" }));
      expect({ protocol, ...row }).toMatchObject({ protocol, statusCode: 401, errorType: "API_ERROR" });
      expect(provider.requests).toHaveLength(asked + 1);
    }
  });
});
