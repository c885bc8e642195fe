import { randomUUID } from "node:crypto";
import { request } from "undici";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { createPrivateKey, sealPrivateKeyHash } from "../../src/applications/application.js";
import { signCallToken } from "../support/call-tokens.js";
import { type Caller, createCallers, type Row, type ScenarioCall } from "../support/callers.js";
import { restCaller, rpcCallers } from "../support/connection-callers.js";
import { type Harness, startHarness, type TestApplication } from "../support/harness.js";

const PAGE = "https://app.example.com";
const SHOP = [{ name: "shop", aliases: ["old-shop"], apiOrigins: ["https://{shop}.shop.example"] }];

let harness: Harness;
let callers: ReadonlyMap<string, Caller>;

beforeAll(async () => {
  harness = await startHarness({ providers: SHOP });
  callers = new Map(createCallers(harness.url));
});

afterAll(() => harness.close());

async function newApplication(options?: Parameters<Harness["createApplication"]>[0]): Promise<TestApplication> {
  const application = await harness.createApplication(options);
  await harness.connect(application, "ada");
  return application;
}

function call(proof: Partial<ScenarioCall>, to = "/me", protocol = "REST"): Promise<Row> {
  const { origin } = harness.sandbox;
  const described = {
    providerName: "sandbox",
    userId: "",
    publicKey: "",
    call: { url: origin + to, method: "GET" },
    ...proof,
  };
  return (callers.get(protocol) as Caller)(described);
}

const bearer = (text: string) => ({ outerHeaders: { authorization: `Bearer ${text}` } });
const OK = { pincStatus: "success", statusCode: 200 };
const DENIED = { pincStatus: "error", errorType: "CALLER_NOT_ALLOWED" };

describe("a call token", () => {
  it.each(["PUBLIC_KEY", "SIGNED_USER", "PRIVATE_KEY"] as const)(
    "is enough for an application that asks for %s",
    async (callerAuth) => {
      const application = await newApplication({ callerAuth });
      expect(await call(bearer(signCallToken(application)))).toMatchObject(OK);
      expect(
        await call({
          publicKey: application.publicKey,
          userId: "ada",
          ...bearer(signCallToken({ ...application, privateKey: createPrivateKey() })),
        }),
      ).toMatchObject(DENIED);
    },
  );

  it.each(["REST", "Connect JSON", "gRPC"])("may stand where the private key may, over %s", async (protocol) => {
    const application = await newApplication({ callerAuth: "PRIVATE_KEY" });
    const claims = {
      providers: ["sandbox"],
      rules: [{ methods: ["GET"], paths: ["/me", "/a/**", "/b/**", "/c/**", "/d/**"] }],
    };
    expect(await call({ privateKey: signCallToken(application, { claims }) }, "/me", protocol)).toMatchObject(OK);
  });

  it("counts beside a private key, which must be right, and within its own rules", async () => {
    const application = await newApplication({ callerAuth: "PRIVATE_KEY" });
    const token = signCallToken(application, { claims: { rules: [{ paths: ["/me"] }] } });
    const { privateKey } = application;
    expect(await call({ privateKey, ...bearer(token) })).toMatchObject(OK);
    expect(await call({ privateKey, ...bearer(token) }, "/items")).toMatchObject({ errorType: "CALL_NOT_PERMITTED" });
    expect(await call({ privateKey: createPrivateKey(), ...bearer(token) })).toMatchObject(DENIED);
    expect(await call({ userSignature: "0".repeat(64), ...bearer(token) })).toMatchObject(DENIED);
  });

  it("ends with the key that signed it, and with the application", async () => {
    const application = await newApplication({ callerAuth: "PRIVATE_KEY" });
    const token = bearer(signCallToken(application));
    expect(await call(token)).toMatchObject(OK);
    expect(await call(token)).toMatchObject(OK);
    const { applications } = harness.store;
    await applications.update(application.publicKey, { state: "DISABLED" }, Date.now());
    await expect.poll(async () => (await call(token))["errorType"]).toBe("INVALID_PUBLIC_KEY");
    const privateKey = createPrivateKey();
    const privateKeyHash = sealPrivateKeyHash(harness.sealer, application.id, privateKey);
    await applications.update(application.publicKey, { state: "ACTIVE", privateKeyHash }, Date.now());
    await expect.poll(async () => (await call(token))["errorType"]).toBe("CALLER_NOT_ALLOWED");
    expect(await call(bearer(signCallToken({ ...application, privateKey })))).toMatchObject(OK);
  });

  it("does not let a browser or an address call that is not on the application's list", async () => {
    const application = await newApplication({ allowedOrigins: [PAGE], allowedAddresses: ["192.0.2.0/24"] });
    expect(await call(bearer(signCallToken(application)))).toMatchObject(DENIED);
    const page = await newApplication({ allowedOrigins: [PAGE] });
    const { authorization } = bearer(signCallToken(page)).outerHeaders;
    expect(await call({ outerHeaders: { authorization, origin: PAGE } })).toMatchObject(OK);
    expect(await call({ outerHeaders: { authorization, origin: "https://evil.test" } })).toMatchObject(DENIED);
  });

  it("can be sent by a page that names no application", async () => {
    const application = await newApplication({ callerAuth: "PRIVATE_KEY", allowedOrigins: [PAGE] });
    const url = `${harness.url}/oauth/method/sandbox/call`;
    const asked = { "access-control-request-method": "POST", "access-control-request-headers": "authorization" };
    const preflight = (origin: string) => request(url, { method: "OPTIONS", headers: { origin, ...asked } });
    const answer = await preflight(PAGE);
    expect(answer.statusCode).toBe(204);
    expect(answer.headers).toMatchObject({
      "access-control-allow-origin": PAGE,
      "access-control-allow-headers": "authorization",
    });
    expect((await preflight("https://evil.test")).statusCode).toBe(403);
    const authorization = `Bearer ${signCallToken(application)}`;
    const body = JSON.stringify({ url: `${harness.sandbox.origin}/me`, method: "GET" });
    const { headers } = await request(url, { method: "POST", headers: { origin: PAGE, authorization }, body });
    expect(headers).toMatchObject({ "access-control-allow-origin": PAGE });
  });

  it("reaches neither the provider nor the log", async () => {
    const application = await newApplication();
    const canary = signCallToken(application, { claims: { jti: randomUUID() } });
    const [, claims = "", signature = ""] = canary.split(".");
    const row = await call({
      ...bearer(canary),
      call: { url: `${harness.sandbox.origin}/echo`, method: "GET", headers: { "x-a": "1" } },
    });
    expect(row).toMatchObject(OK);
    await call(bearer(`${canary}x`));
    await call(bearer(canary), "/status/500");
    await expect.poll(() => harness.logLines.join("")).toContain("API_ERROR");
    const received = JSON.stringify(harness.sandbox.requests);
    for (const part of [claims, signature]) {
      expect(received).not.toContain(part);
      expect(JSON.stringify(row)).not.toContain(part);
      expect(harness.logLines.join("")).not.toContain(part);
    }
  });
});

describe("the methods about connections", () => {
  const protocols = () => [["REST", restCaller(harness.url)] as const, ...rpcCallers(harness.url)];

  it("list with a call token what it is for, and neither end a connection nor make a link", async () => {
    const application = await newApplication({ callerAuth: "PRIVATE_KEY" });
    await harness.connect(application, "ada", { providerName: "shop", originParameters: { shop: "acme" } });
    const headersFor = (claims = {}) => ({ authorization: `Bearer ${signCallToken(application, { claims })}` });
    for (const [protocol, caller] of protocols()) {
      const listed = async (claims?: object) => {
        const outcome = await caller("listConnections", {}, headersFor(claims));
        const { connections } = (outcome as { answer: { connections: Array<{ providerName: string }> } }).answer;
        return connections.map(({ providerName }) => providerName);
      };
      expect([protocol, await listed()]).toEqual([protocol, ["sandbox", "shop"]]);
      expect(await listed({ providers: ["old-shop"] })).toEqual(["shop"]);
      expect(await listed({ sub: "bob" })).toEqual([]);
      expect(await caller("listConnections", { userId: "bob" }, headersFor())).toMatchObject({
        errorType: "CALLER_NOT_ALLOWED",
      });
      expect(await caller("listConnections", {}, headersFor({ exp: 1 }))).toMatchObject({
        errorType: "CALLER_NOT_ALLOWED",
      });
      const named = { publicKey: application.publicKey, userId: "ada" };
      const { privateKey } = application;
      for (const fields of [{}, named, { ...named, privateKey }]) {
        const ended = await caller("deleteConnection", { ...fields, providerName: "sandbox" }, headersFor());
        expect(ended).toMatchObject({
          errorType: "CALLER_NOT_ALLOWED",
          message: expect.stringContaining("only for calls"),
        });
        expect(await caller("createConnectLink", fields, headersFor())).toMatchObject({
          errorType: "CALLER_NOT_ALLOWED",
        });
      }
      expect(await listed()).toHaveLength(2);
    }
  });
});
