import { randomUUID } from "node:crypto";
import { afterAll, beforeAll, beforeEach, describe, expect, it } from "vitest";
import { openToken } from "../../src/oauth/store-answer.js";
import { postRest } from "../support/callers.js";
import { type Harness, startHarness, type TestApplication } from "../support/harness.js";
import { answerJson, startTokenEndpoint, type TestTokenEndpoint } from "../support/token-endpoint.js";

/** The habits of each provider. */
const HABITS: Readonly<Record<string, object>> = {
  json: { tokenRequestFormat: "json", clientAuthentication: "client_secret_post" },
  launchpad: {
    clientAuthentication: "client_secret_post",
    tokenParameters: { action: "requesttoken", expiring: "1" },
    codeParameters: { type: "web_server" },
    refreshParameters: { type: "refresh", grant_type: "", expiring: "" },
  },
  wrapped: { tokenResponseMember: "body", defaultExpiresIn: 600 },
};

let harness: Harness;
let endpoint: TestTokenEndpoint;
let elsewhere: TestTokenEndpoint;
let application: TestApplication;

beforeAll(async () => {
  endpoint = await startTokenEndpoint(() => harness.sandbox.origin);
  elsewhere = await startTokenEndpoint(() => harness.sandbox.origin);
  harness = await startHarness({ definitionsFor: definitions, env: { RELAY_MAX_RESPONSE_BYTES: "1024" } });
  application = await harness.createApplication();
  for (const name of [...Object.keys(HABITS), "elsewhere"]) await harness.putClient(application, name);
});

beforeEach(() => {
  for (const { received, requests } of [endpoint, elsewhere]) {
    received.length = 0;
    requests.length = 0;
  }
  endpoint.play = (_body, response) => answerJson(response, 200, harness.sandbox.issueToken());
  elsewhere.play = (_body, _response, pass) => pass();
});

afterAll(async () => {
  await harness.close();
  await endpoint.close();
  await elsewhere.close();
});

function definitions(sandboxOrigin: string): object[] {
  const habits = Object.entries({ ...HABITS, elsewhere: { refreshEndpoint: `${elsewhere.url}/again?refresh` } });
  return habits.map(([name, members]) => ({
    name,
    apiOrigins: [sandboxOrigin],
    oauth2: { tokenEndpoint: endpoint.url, ...members },
  }));
}

/** A user whose access token ended long ago. */
async function connectUser(providerName: string) {
  const userId = randomUUID();
  const { refresh_token: refreshToken = "" } = harness.sandbox.issueToken();
  await harness.connect(application, userId, { providerName, refreshToken, expiresAt: 1 });
  const key = { applicationId: application.id, userId, providerName };
  const call = { url: `${harness.sandbox.origin}/me`, method: "GET" };
  return {
    refreshToken,
    call: async () => {
      const { text } = await postRest(harness.url, { providerName, userId, publicKey: application.publicKey, call });
      return JSON.parse(text).rows[0];
    },
    row: async () => {
      const row = await harness.store.connections.find(key);
      if (row === undefined) throw new Error("the connection is gone");
      return row;
    },
  };
}

async function storedRefreshToken({ row }: Awaited<ReturnType<typeof connectUser>>): Promise<string> {
  const connection = await row();
  if (connection.refreshToken === undefined) throw new Error("the refresh token is gone");
  return openToken(harness.sealer, connection, "refresh_token", connection.refreshToken).reveal();
}

describe("a token is refreshed as its provider's definition says", () => {
  it("with a JSON body", async () => {
    const user = await connectUser("json");
    expect(await user.call()).toMatchObject({ pincStatus: "success" });
    const [[, mediaType, body] = ["", "", ""]] = endpoint.requests;
    expect(mediaType).toBe("application/json");
    const { client_id, client_secret } = harness.sandbox.client;
    expect(JSON.parse(body)).toEqual({
      grant_type: "refresh_token",
      refresh_token: user.refreshToken,
      client_id,
      client_secret,
    });
  });

  it("at another endpoint", async () => {
    const user = await connectUser("elsewhere");
    expect(await user.call()).toMatchObject({ pincStatus: "success" });
    expect(endpoint.requests).toEqual([]);
    expect(elsewhere.requests.map(([path]) => path)).toEqual(["/token/again?refresh"]);
  });

  it("with the parameters of a refresh, and without what they leave out", async () => {
    const user = await connectUser("launchpad");
    expect(await user.call()).toMatchObject({ pincStatus: "success" });
    const { client_id, client_secret } = harness.sandbox.client;
    expect(endpoint.received.map((form) => Object.fromEntries(form))).toEqual([
      { refresh_token: user.refreshToken, action: "requesttoken", type: "refresh", client_id, client_secret },
    ]);
  });

  it("from an answer that wraps the token response, with the lifetime to assume", async () => {
    const user = await connectUser("wrapped");
    const { access_token, refresh_token } = harness.sandbox.issueToken();
    endpoint.play = (_body, response) =>
      answerJson(response, 200, { status: 0, body: { access_token, refresh_token } });
    expect(await user.call()).toMatchObject({ pincStatus: "success" });
    const { expiresAt = 0, obtainedAt } = await user.row();
    expect(expiresAt - obtainedAt).toBe(600_000);
    expect(await storedRefreshToken(user)).toBe(refresh_token);
  });
});

describe("an answer that is longer than a call's may be", () => {
  it("gives its tokens", async () => {
    const user = await connectUser("json");
    const rotated = "r".repeat(4096);
    endpoint.play = (_body, response) =>
      answerJson(response, 200, { ...harness.sandbox.issueToken(), refresh_token: rotated });
    expect(await user.call()).toMatchObject({ pincStatus: "success" });
    expect(await storedRefreshToken(user)).toBe(rotated);
  });
});

describe("a token endpoint that does not answer", () => {
  it("is named in the log, with the cause", async () => {
    const user = await connectUser("json");
    endpoint.play = (_body, response) => void response.destroy();
    expect(await user.call()).toMatchObject({ errorType: "REFRESH_UNAVAILABLE" });
    const lines = harness.logLines.filter((line) => line.includes('"msg":"no answer"')).map((line) => JSON.parse(line));
    expect(lines.at(-1)).toMatchObject({ provider: "json", error: "PROVIDER_UNREACHABLE", cause: "UND_ERR_SOCKET" });
  });
});

describe("an answer that is malformed", () => {
  it.each([
    ["in the wrapper", { status: 0, body: { access_token: 7, refresh_token: "rotated" } }],
    ["beside the wrapper", { status: 0, body: {}, refresh_token: "rotated" }],
  ])("does not cost the refresh token %s", async (_where, answer) => {
    const user = await connectUser("wrapped");
    endpoint.play = (_body, response) => answerJson(response, 200, answer);
    expect(await user.call()).toMatchObject({ errorType: "REFRESH_UNAVAILABLE" });
    expect(await storedRefreshToken(user)).toBe("rotated");
    expect(await user.row()).toMatchObject({ state: "ACTIVE", lastErrorClass: "unreadable" });
  });
});

describe("the breaker", () => {
  it("counts the endpoint that refresh requests go to, not the token endpoint beside it", async () => {
    elsewhere.play = (_body, response) => answerJson(response, 503, {});
    for (const _ of Array(10)) {
      expect(await (await connectUser("elsewhere")).call()).toMatchObject({ errorType: "REFRESH_UNAVAILABLE" });
    }
    expect(elsewhere.requests).toHaveLength(10);
    expect(await (await connectUser("elsewhere")).call()).toMatchObject({ errorType: "REFRESH_UNAVAILABLE" });
    expect(elsewhere.requests).toHaveLength(10);
    expect(await (await connectUser("json")).call()).toMatchObject({ pincStatus: "success" });
  });
});

it("leaves no secret in a log line", () => {
  expect(harness.logLines.some((line) => line.includes("refresh"))).toBe(true);
  expect(harness.logLines.join("")).not.toMatch(/sandbox_[ar]t_|CANARY|rotated/);
  expect(harness.logLines.join("")).not.toContain(harness.sandbox.client.client_secret);
});
