import { createServer } from "node:http";
import { inspect } from "node:util";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import {
  type CallRule,
  createCallToken,
  createRelayClient,
  RelayCallError,
  type RelayClient,
  type RelayClientOptions,
  signUser,
  verifyWebhook,
} from "../../client/src/client.js";
import { type Harness, startHarness, type TestApplication } from "../support/harness.js";
import { startWebhookReceiver } from "../support/webhook-receiver.js";
import { putEndpoint } from "../webhooks/webhook-bed.js";

let harness: Harness;
let application: TestApplication;
let api: string;
let relay: RelayClient;

beforeAll(async () => {
  harness = await startHarness();
  api = harness.sandbox.origin;
  application = await harness.createApplication({
    callerAuth: "PRIVATE_KEY",
    allowedRedirectUris: ["http://localhost:9/back"],
  });
  await harness.connect(application, "ada");
  await harness.putClient(application);
  relay = createRelayClient(options());
});

afterAll(() => harness.close());

function options(more: Partial<RelayClientOptions> = {}): RelayClientOptions {
  const { publicKey, privateKey } = application;
  return { url: `${harness.url}/`, publicKey, privateKey, ...more };
}

/** A client that has nothing but a call token for ada. */
async function tokenClient(rules?: readonly CallRule[]): Promise<RelayClient> {
  const callToken = await relay.account("ada", "sandbox").token(rules && { rules });
  return createRelayClient({ url: harness.url, publicKey: application.publicKey, callToken });
}

async function errorOf(promise: Promise<unknown>): Promise<RelayCallError> {
  const error = await promise.then(
    () => undefined,
    (rejected: unknown) => rejected,
  );
  expect(error).toBeInstanceOf(RelayCallError);
  return error as RelayCallError;
}

describe("createRelayClient()", () => {
  it.each(["privateKey", "callToken"])("refuses a %s that no header can hold, without quoting it", (name) => {
    for (const value of ["CANARY\nmore", "CANARY\0", "CANARY\u{2713}"]) {
      const create = () => createRelayClient(options({ [name]: value }));
      expect(create).toThrow(new TypeError(`${name} has a line break or another character that a header cannot hold.`));
    }
  });

  it.each([
    ...["", "relay.example", "127.0.0.1:8080", "localhost:8080", "ftp://relay.example", "https://relay.example?a#b"],
    ...["https://user:CANARY@relay.example", "https://user:CANARY@relay.example:99999"],
  ])("refuses %s as the url of a relay, without quoting it", (url) => {
    let refusal: unknown;
    try {
      createRelayClient(options({ url }));
    } catch (error) {
      refusal = error;
    }
    expect(refusal).toEqual(new TypeError("url must be http(s)://host[:port][/path]."));
    expect(inspect(refusal)).not.toContain("CANARY");
  });

  it("takes a key with the line break at the end of its file", async () => {
    const client = createRelayClient(options({ privateKey: `${application.privateKey}\r\n` }));
    expect(await client.connections("ada")).toHaveLength(1);
    const byToken = createRelayClient(options({ callToken: await client.account("ada", "sandbox").token() }));
    expect(await byToken.account("ada", "sandbox").call({ url: `${api}/me` })).toMatchObject({ status: 200 });
  });
});

describe("createCallToken()", () => {
  it("takes a key with the line break at the end of its file", async () => {
    const { publicKey, privateKey } = application;
    const callToken = await createCallToken({ publicKey, privateKey: `${privateKey}\r\n`, userId: "ada" });
    const client = createRelayClient({ url: harness.url, publicKey, callToken });
    expect(await client.account("ada", "sandbox").call({ url: `${api}/me` })).toMatchObject({ status: 200 });
  });
});

describe("account.call()", () => {
  it("gives the provider's answer as plain data", async () => {
    const headers = { "X-Pinc-Response-Data-At": "rows.0.data" };
    const answer = await relay.account("ada", "sandbox").call<{ sub: string }>({ url: `${api}/me`, headers });
    expect(answer).toMatchObject({ status: 200, data: { sub: "1001" }, contentType: "application/json" });
    expect(answer).toMatchObject({ possiblyTruncated: false, dataEncoding: undefined });
    expect(answer.callId).toMatch(/^[0-9a-f-]{36}$/);
  });

  it("sends payload, query, headers and exact bytes", async () => {
    const account = relay.account("ada", "sandbox");
    const url = `${api}/echo`;
    const call = { url, method: "POST", headers: { "x-count": 2 }, queryString: { a: [1, 2] }, explodeArrays: true };
    const { data } = await account.call<Record<string, unknown>>({ ...call, payload: { text: "grüezi" } });
    expect(JSON.stringify(data)).toContain("grüezi");
    expect(data).toMatchObject({ method: "POST", target: expect.stringContaining("?a=1&a=2") });
    expect(data["headers"]).toContainEqual(["x-count", "2"]);
    const bytes = new Uint8Array(100_000).fill(65);
    const sent = await account.call<Record<string, unknown>>({ url, method: "PUT", body: bytes });
    expect(JSON.stringify(sent.data)).toContain("A".repeat(100));
    expect(sent.data["headers"]).toContainEqual(["content-length", "100000"]);
  });

  it.each<[string, object, object]>([
    ["the provider's error", { url: "/status/404" }, { errorType: "API_ERROR", statusCode: 404, retryable: false }],
    ["a busy provider, for a GET", { url: "/status/503" }, { errorType: "API_ERROR", retryable: true }],
    ["a busy provider, for a POST", { url: "/status/503", method: "POST" }, { retryable: false }],
    ["too many, for a POST", { url: "/status/429", method: "POST" }, { statusCode: 429, retryable: true }],
    ["a method that is none", { url: "/me", method: "NOPE NOPE" }, { errorType: "CALL_FORMAT_ERROR", statusCode: 400 }],
  ])("throws %s with its type, status, call id and whether to repeat it", async (_, call, expected) => {
    const { url, ...rest } = call as { url: string };
    const error = await errorOf(relay.account("ada", "sandbox").call({ url: api + url, ...rest }));
    expect(error).toMatchObject(expected);
    expect(error.callId).toMatch(/^[0-9a-f-]{36}$/);
    expect(error.message).toMatch(/^[A-Z_]+: \S.*\.$/);
  });

  it("has the provider's answer in the error", async () => {
    const error = await errorOf(relay.account("ada", "sandbox").call({ url: `${api}/status/404` }));
    expect(error.data).toBeDefined();
    expect(Object.keys(error.headers).length).toBeGreaterThan(0);
  });

  it("says of a user who has not connected that the user must connect", async () => {
    const error = await errorOf(relay.account("nobody", "sandbox").call({ url: `${api}/me` }));
    expect(error).toMatchObject({ errorType: "INVALID_OAUTHID", statusCode: 401, retryable: false });
  });

  it("throws what JSON says of a payload that it cannot hold, and asks nobody", async () => {
    const fetch = () => expect.fail("nothing can be sent");
    const call = { url: `${api}/me`, payload: { count: 1n } };
    const asked = createRelayClient(options({ fetch })).account("ada", "sandbox").call(call);
    await expect(asked).rejects.toThrow(TypeError);
  });

  it("says that no relay answers, or that something else does", async () => {
    const other = createServer((_request, response) => void response.writeHead(502).end("<html>Bad gateway</html>"));
    await new Promise<void>((resolve) => void other.listen(0, "127.0.0.1", resolve));
    const { port } = other.address() as { port: number };
    const url = `http://127.0.0.1:${port}`;
    const ask = () =>
      createRelayClient(options({ url }))
        .account("ada", "sandbox")
        .call({ url: `${api}/me` });
    expect(await errorOf(ask())).toMatchObject({ errorType: "RELAY_UNREACHABLE", statusCode: 502, retryable: true });
    other.removeAllListeners("request").on("request", (_request, response) => {
      response.writeHead(503, { "content-type": "application/json" }).end('{"message":"no upstream"}');
    });
    const client = createRelayClient(options({ url }));
    for (const askAgain of [ask, () => client.connections("ada"), () => client.disconnect("ada", "sandbox")]) {
      expect(await errorOf(askAgain())).toMatchObject({ errorType: "RELAY_UNREACHABLE", statusCode: 503 });
    }
    await new Promise((resolve) => other.close(resolve));
    const gone = await errorOf(ask());
    expect(gone).toMatchObject({ errorType: "RELAY_UNREACHABLE", statusCode: 0, callId: undefined });
    expect(gone.cause).toBeInstanceOf(Error);
  });

  it("ends with the caller's own reason when it is aborted", async () => {
    const reason = new Error("enough");
    const call = { url: `${api}/me`, signal: AbortSignal.abort(reason) };
    await expect(relay.account("ada", "sandbox").call(call)).rejects.toBe(reason);
  });
});

describe("account.fetch", () => {
  it("takes the provider's URLs and answers as the provider does", async () => {
    const { fetch } = relay.account("ada", "sandbox");
    const answer = await fetch(`${api}/me?a=%2F`);
    expect(answer.status).toBe(200);
    expect(await answer.json()).toMatchObject({ sub: "1001" });
    expect((await fetch(new URL("/status/404", api))).status).toBe(404);
  });

  it("sends what it is given, as a body with a length, a stream or a Request, and no proof to the provider", async () => {
    const { fetch } = relay.account("ada", "sandbox");
    const headers = { authorization: "Bearer what an SDK was given", "content-type": "text/plain" };
    const stream = new Blob(["grüezi"]).stream();
    const given: [string | Request, RequestInit?][] = [
      [`${api}/echo`, { method: "POST", headers, body: "grüezi" }],
      [`${api}/echo`, { method: "POST", headers, body: stream, duplex: "half" } as RequestInit],
      [new Request(`${api}/echo`, { method: "POST", headers, body: "grüezi" })],
    ];
    for (const [input, init] of given) {
      const text = await (await fetch(input, init)).text();
      expect(text).toContain("grüezi");
      expect(text).not.toMatch(/what an SDK was given|eyJ/);
    }
    for (const input of [`${api}/echo`, new Request(`${api}/echo`, { method: "POST", headers, body: "grüezi" })]) {
      const answer = await fetch(input, input instanceof Request ? {} : { method: "POST", headers, body: "grüezi" });
      const { headers: received } = (await answer.json()) as { headers: [string, string][] };
      expect(received.map(([name, value]) => [name.toLowerCase(), value])).toContainEqual(["content-length", "7"]);
    }
    const empty = await fetch(new Request(`${api}/echo`, { method: "DELETE" }));
    expect(await empty.json()).toMatchObject({ method: "DELETE", body: "" });
  });

  it("goes on with a link of the relay's, and stays within the rules of its call token", async () => {
    const account = (await tokenClient([{ methods: ["GET"], paths: ["/me"] }])).account("ada", "sandbox");
    expect((await account.fetch(`${account.via(new URL(api).host)}/me`)).status).toBe(200);
    // As the relay's links have it, whatever name and spelling the client was made with.
    const { publicKey } = application;
    const callToken = await relay.account("ada", "sandbox").token();
    const odd = createRelayClient({ url: harness.url.replace("http", "HTTP"), publicKey, callToken });
    const oddAccount = odd.account("ada", "sandbox");
    const link = `${harness.url}${new URL(oddAccount.via(new URL(api).host)).pathname}/me`;
    expect((await oddAccount.fetch(link)).status).toBe(200);
    const refused = await account.fetch(`${api}/echo`);
    expect([refused.status, refused.headers.get("x-relay-error")]).toEqual([403, "CALL_NOT_PERMITTED"]);
  });

  it("follows no link to another provider's account, whoever wrote it", async () => {
    const { publicKey } = application;
    const callToken = await createCallToken({ publicKey, privateKey: application.privateKey, userId: "ada" });
    const account = createRelayClient({ url: harness.url, publicKey, callToken }).account("ada", "sandbox");
    const refused = await account.fetch(`${harness.url}/via/other/${new URL(api).host}/me`);
    expect([refused.status, refused.headers.get("x-relay-error")]).toEqual([403, "URL_NOT_ALLOWED"]);
    const odd = await account.fetch(`${harness.url.replace("//", "//user@")}/via/sandbox/${new URL(api).host}/me`);
    expect(odd.headers.get("x-relay-error")).toBe("URL_NOT_ALLOWED");
  });

  it("ends when it is aborted, and needs a proof", async () => {
    const { fetch } = relay.account("ada", "sandbox");
    const reason = new Error("enough");
    await expect(fetch(`${api}/me`, { signal: AbortSignal.abort(reason) })).rejects.toBe(reason);
    const aborter = new AbortController();
    // Left while its body is read, which never ends.
    const body = new ReadableStream({ pull: () => aborter.abort(reason) }, { highWaterMark: 0 });
    const unfinished = { method: "POST", body, duplex: "half", signal: aborter.signal };
    const unsent = fetch(new Request(`${api}/echo`, unfinished as RequestInit));
    await expect(unsent).rejects.toBe(reason);
    const client = createRelayClient({ url: harness.url, publicKey: application.publicKey });
    await expect(client.account("ada", "sandbox").fetch(`${api}/me`)).rejects.toThrow(/set privateKey/);
  });
});

describe("account.token()", () => {
  it("is all that a client needs for this account", async () => {
    const answer = await (await tokenClient()).account("ada", "sandbox").call({ url: `${api}/me` });
    expect(answer.status).toBe(200);
  });

  it("lets nothing through but what its rules say", async () => {
    const account = (await tokenClient([{ methods: ["GET"], paths: ["/me"] }])).account("ada", "sandbox");
    expect((await account.call({ url: `${api}/me` })).status).toBe(200);
    const error = await errorOf(account.call({ url: `${api}/echo` }));
    expect(error).toMatchObject({ errorType: "CALL_NOT_PERMITTED", statusCode: 403, retryable: false });
  });

  it("is for no other user and no other provider", async () => {
    const client = await tokenClient();
    const other = await errorOf(client.account("bob", "sandbox").call({ url: `${api}/me` }));
    expect(other.errorType).toBe("CALLER_NOT_ALLOWED");
    const { publicKey, privateKey } = application;
    const token = await createCallToken({ publicKey, privateKey, userId: "ada", providers: ["github"] });
    const elsewhere = createRelayClient({ url: harness.url, publicKey, callToken: token });
    expect((await errorOf(elsewhere.account("ada", "sandbox").call({ url: `${api}/me` }))).statusCode).toBe(403);
  });

  it("needs the private key", async () => {
    await expect((await tokenClient()).account("ada", "sandbox").token()).rejects.toThrow(/set privateKey/);
  });
});

describe("signUser()", () => {
  it("makes the signature that a SIGNED_USER application asks for", async () => {
    const signed = await harness.createApplication({ callerAuth: "SIGNED_USER" });
    await harness.connect(signed, "grüße");
    const query = { user_id: "grüße", public_key: signed.publicKey };
    const userSignature = await signUser(signed.privateKey, "grüße");
    expect(await signUser(`${signed.privateKey}\n`, "grüße")).toBe(userSignature);
    const url = `${harness.url}/oauth/connections?${new URLSearchParams({ ...query, user_signature: userSignature })}`;
    expect((await fetch(url)).status).toBe(200);
  });
});

describe("connections of a user", () => {
  it("are listed, linked to and ended", async () => {
    await harness.connect(application, "carl");
    expect(await relay.connections("carl")).toMatchObject([{ providerName: "sandbox", state: "ACTIVE" }]);
    const redirectUri = "http://localhost:9/back";
    const { connectUri } = await relay.connectLink({ userId: "carl", provider: "sandbox", redirectUri });
    expect(connectUri).toMatch(/^http:\/\/127\.0\.0\.1:\d+\/oauth\/connect/);
    expect(await relay.disconnect("carl", "sandbox")).toHaveProperty("revocation");
    expect(await relay.connections("carl")).toEqual([]);
  });

  it("are refused as a call is, with the row's type", async () => {
    const client = createRelayClient({ url: harness.url, publicKey: application.publicKey });
    for (const ask of [() => client.connections("ada"), () => client.disconnect("ada", "sandbox")]) {
      expect((await errorOf(ask())).errorType).toBe("CALLER_NOT_ALLOWED");
    }
    const link = relay.connectLink({ userId: "ada", provider: "nowhere" });
    expect(await errorOf(link)).toMatchObject({ errorType: "INVALID_PROVIDER", statusCode: 404 });
  });
});

describe("verifyWebhook()", () => {
  it("reads an event that the relay sent, and refuses one that was changed", async () => {
    const receiver = await startWebhookReceiver();
    const secret = await putEndpoint(harness.store, harness.sealer, application.id, receiver.url);
    await harness.connect(application, "dora");
    const [event] = await receiver.arrived(1);
    await receiver.close();
    const { body = "", headers = {} } = event ?? {};
    expect(verifyWebhook(secret, body, headers)).toMatchObject({
      type: "connection.created",
      data: { user_id: "dora", provider_name: "sandbox" },
    });
    expect(verifyWebhook(`${secret}\n`, body, headers)).toHaveProperty("type", "connection.created");
    expect(() => verifyWebhook(secret, body.replace("dora", "carl"), headers)).toThrow(/signature/i);
  });
});
