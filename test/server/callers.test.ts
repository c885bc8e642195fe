import { createHmac } from "node:crypto";
import { request } from "undici";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { createPrivateKey, sealPrivateKeyHash } from "../../src/applications/application.js";
import { type Caller, createCallers, type ScenarioCall } from "../support/callers.js";
import { type Harness, startHarness, type TestApplication } from "../support/harness.js";
import { startSecondRelay } from "./second-relay.js";

const PROTOCOLS = ["REST", "gRPC"];
const ALLOWED = { pincStatus: "success", statusCode: 200 };
const DENIED = { pincStatus: "error", statusCode: 403, errorType: "CALLER_NOT_ALLOWED" };

let harness: Harness;
let byPublicKey: TestApplication;
let bySignature: TestApplication;
let byPrivateKey: TestApplication;

beforeAll(async () => {
  harness = await startHarness();
  byPublicKey = await harness.createApplication();
  bySignature = await harness.createApplication({ callerAuth: "SIGNED_USER" });
  byPrivateKey = await harness.createApplication({ callerAuth: "PRIVATE_KEY" });
  for (const application of [byPublicKey, bySignature, byPrivateKey]) await harness.connect(application, "ada");
});

afterAll(() => harness.close());

function callerOf(url: string, protocol: string): Caller {
  return new Map(createCallers(url)).get(protocol) as Caller;
}

function callAs(application: TestApplication, proof: Partial<ScenarioCall> = {}): ScenarioCall {
  const call = { url: `${harness.sandbox.origin}/me`, method: "GET" };
  return { providerName: "sandbox", userId: "ada", publicKey: application.publicKey, call, ...proof };
}

/** user_signature as an application's server makes it. */
function sign({ privateKey }: TestApplication, userId = "ada"): string {
  return createHmac("sha256", privateKey).update(userId).digest("hex");
}

const bearer = (key: string) => ({ outerHeaders: { authorization: `Bearer ${key}` } });
const partner = (publicKey: string, key: string) => ({ outerHeaders: { "x-partner-key": `${publicKey}.${key}` } });

describe.each(PROTOCOLS)("caller_auth over %s", (protocol) => {
  const call = (application: TestApplication, proof?: Partial<ScenarioCall>) =>
    callerOf(harness.url, protocol)(callAs(application, proof));

  describe("PUBLIC_KEY", () => {
    it("refuses proof that is wrong, though none is needed", async () => {
      expect(await call(byPublicKey, { privateKey: byPrivateKey.privateKey })).toMatchObject(DENIED);
      expect(await call(byPublicKey, { userSignature: sign(bySignature) })).toMatchObject(DENIED);
    });

    it("takes the public key alone, and stronger proof", async () => {
      expect(await call(byPublicKey)).toMatchObject(ALLOWED);
      expect(await call(byPublicKey, { userSignature: sign(byPublicKey) })).toMatchObject(ALLOWED);
      expect(await call(byPublicKey, bearer(byPublicKey.privateKey))).toMatchObject(ALLOWED);
    });
  });

  describe("SIGNED_USER", () => {
    it("says what to send when there is no signature", async () => {
      const row = await call(bySignature);
      expect(row).toMatchObject({ ...DENIED, inernalError: expect.stringContaining("user_signature") });
    });

    it.each([
      ["upper-case", () => sign(bySignature).toUpperCase()],
      ["of another user", () => sign(bySignature, "bob")],
      ["of another application", () => sign(byPublicKey)],
      ["cut off", () => sign(bySignature).slice(0, 62)],
      ["too long", () => `${sign(bySignature)}00`],
      ["base64", () => Buffer.from(sign(bySignature), "hex").toString("base64")],
      ["of the key's text alone", () => createHmac("sha256", "").update("ada").digest("hex")],
    ])("refuses a signature that is %s", async (_what, signature) => {
      expect(await call(bySignature, { userSignature: signature() })).toMatchObject(DENIED);
    });

    it("refuses a signature for a user who is not connected as one for a user who is", async () => {
      const wrong = await call(bySignature, { userId: "nobody", userSignature: sign(bySignature) });
      expect(wrong).toMatchObject(DENIED);
      const right = await call(bySignature, { userId: "nobody", userSignature: sign(bySignature, "nobody") });
      expect(right).toMatchObject({ errorType: "INVALID_OAUTHID" });
    });

    it("takes the signature of the user, and the private key", async () => {
      expect(await call(bySignature, { userSignature: sign(bySignature) })).toMatchObject(ALLOWED);
      expect(await call(bySignature, { privateKey: bySignature.privateKey })).toMatchObject(ALLOWED);
    });
  });

  describe("PRIVATE_KEY", () => {
    it("says where to send the key when there is none", async () => {
      const row = await call(byPrivateKey);
      expect(row).toMatchObject({ ...DENIED, inernalError: expect.stringContaining("x-partner-key") });
    });

    it("is not satisfied by a signature", async () => {
      expect(await call(byPrivateKey, { userSignature: sign(byPrivateKey) })).toMatchObject(DENIED);
    });

    it.each([
      ["another application's", () => ({ privateKey: byPublicKey.privateKey })],
      ["cut off", () => ({ privateKey: byPrivateKey.privateKey.slice(0, -1) })],
      ["the public key", () => ({ privateKey: byPrivateKey.publicKey })],
      ["sent with the scheme Basic", () => ({ outerHeaders: { authorization: `Basic ${byPrivateKey.privateKey}` } })],
      ["sent without a scheme", () => ({ outerHeaders: { authorization: byPrivateKey.privateKey } })],
      [
        "in x-partner-key without the public key",
        () => ({ outerHeaders: { "x-partner-key": byPrivateKey.privateKey } }),
      ],
      [
        "wrong where it counts, and right in the header",
        () => ({ privateKey: "wrong", ...bearer(byPrivateKey.privateKey) }),
      ],
      [
        "right in private_key, and wrong in Authorization",
        () => ({ privateKey: byPrivateKey.privateKey, ...bearer("wrong") }),
      ],
      [
        "right in private_key, and no token at all in Authorization",
        () => ({ privateKey: byPrivateKey.privateKey, ...bearer("no token") }),
      ],
      [
        "right in private_key, and wrong in x-partner-key",
        () => ({ privateKey: byPrivateKey.privateKey, ...partner(byPrivateKey.publicKey, "wrong") }),
      ],
      [
        "right in private_key, and without its public key in x-partner-key",
        () => ({
          privateKey: byPrivateKey.privateKey,
          outerHeaders: { "x-partner-key": byPrivateKey.privateKey },
        }),
      ],
      [
        "right in private_key, and beside another public key in x-partner-key",
        () => ({
          privateKey: byPrivateKey.privateKey,
          ...partner(byPublicKey.publicKey, byPrivateKey.privateKey),
        }),
      ],
      [
        "right in Authorization, and wrong in x-partner-key",
        () => ({
          outerHeaders: {
            authorization: `Bearer ${byPrivateKey.privateKey}`,
            "x-partner-key": `${byPrivateKey.publicKey}.wrong`,
          },
        }),
      ],
      [
        "right beside a signature that is wrong",
        () => ({ privateKey: byPrivateKey.privateKey, userSignature: sign(byPrivateKey, "bob") }),
      ],
    ])("refuses a key that is %s", async (_what, proof) => {
      expect(await call(byPrivateKey, proof())).toMatchObject(DENIED);
    });

    it("refuses the key of the application in x-partner-key for another one that is named", async () => {
      const { publicKey, privateKey } = byPrivateKey;
      expect(await call(bySignature, partner(publicKey, privateKey))).toMatchObject(DENIED);
    });

    it("takes the key from every place at once, beside a proxy's own Authorization", async () => {
      const { publicKey, privateKey } = byPrivateKey;
      const outerHeaders = { authorization: `Bearer ${privateKey}`, "x-partner-key": `${publicKey}.${privateKey}` };
      expect(await call(byPrivateKey, { privateKey, outerHeaders })).toMatchObject(ALLOWED);
      const proxied = { privateKey, outerHeaders: { authorization: "Basic cHJveHk6cHJveHk=" } };
      expect(await call(byPrivateKey, proxied)).toMatchObject(ALLOWED);
    });

    it.each([
      ["private_key", () => ({ privateKey: byPrivateKey.privateKey })],
      ["Authorization: Bearer", () => bearer(byPrivateKey.privateKey)],
      ["authorization: bearer", () => ({ outerHeaders: { authorization: `bearer ${byPrivateKey.privateKey}` } })],
      ["x-partner-key", () => partner(byPrivateKey.publicKey, byPrivateKey.privateKey)],
      ["x-partner-key alone", () => ({ publicKey: "", ...partner(byPrivateKey.publicKey, byPrivateKey.privateKey) })],
    ])("takes the key as %s", async (_where, proof) => {
      expect(await call(byPrivateKey, proof())).toMatchObject(ALLOWED);
    });
  });

  it("ends the old key, and what it signed, when the key is rotated", async () => {
    const application = await harness.createApplication({ callerAuth: "SIGNED_USER" });
    await harness.connect(application, "ada");
    const rotated = { ...application, privateKey: createPrivateKey() };
    expect(await call(application, { privateKey: rotated.privateKey })).toMatchObject(DENIED);
    const privateKeyHash = sealPrivateKeyHash(harness.sealer, application.id, rotated.privateKey);
    await harness.store.applications.update(application.publicKey, { privateKeyHash }, Date.now());
    expect(await call(application, { privateKey: application.privateKey })).toMatchObject(DENIED);
    expect(await call(application, { userSignature: sign(application) })).toMatchObject(DENIED);
    expect(await call(rotated, { privateKey: rotated.privateKey })).toMatchObject(ALLOWED);
    expect(await call(rotated, { userSignature: sign(rotated) })).toMatchObject(ALLOWED);
  });
});

describe("a proof that stands twice", () => {
  /** [path, body], with the proof in the header alone. */
  const TARGETS: ReadonlyArray<readonly [string, (application: TestApplication) => readonly [string, object]]> = [
    [
      "the JSON route",
      ({ publicKey }) => [
        `/oauth/method/sandbox/call?user_id=ada&public_key=${publicKey}`,
        { url: `${harness.sandbox.origin}/me`, method: "GET" },
      ],
    ],
    [
      "the JSON route, with the call in the query",
      ({ publicKey }) => [
        `/oauth/method/sandbox/call?user_id=ada&public_key=${publicKey}&body.url=${harness.sandbox.origin}/me&body.method=GET`,
        {},
      ],
    ],
    [
      "the raw route",
      ({ publicKey }) => [
        `/oauth/method/sandbox/stream?user_id=ada&public_key=${publicKey}`,
        { url: `${harness.sandbox.origin}/me`, method: "GET" },
      ],
    ],
    ["Connect", (application) => ["/relay.v1.RelayService/Call", callAs(application)]],
    [
      "Connect for connections",
      ({ publicKey }) => ["/relay.v1.RelayService/ListConnections", { publicKey, userId: "ada" }],
    ],
    [
      "the route of connect links",
      ({ publicKey }) => ["/oauth/connect-links", { public_key: publicKey, user_id: "ada" }],
    ],
  ];
  const send = async ([path, body]: readonly [string, object], fields: readonly string[]) => {
    const isInQuery = path.includes("body.url");
    const answer = await request(harness.url + path, {
      method: "POST",
      headers: ["content-type", "application/json", ...fields],
      body: isInQuery ? "" : JSON.stringify(body),
    });
    return answer.body.text();
  };

  it.each(TARGETS)("is right both times or refused, over %s", async (_, target) => {
    const right = `Bearer ${byPrivateKey.privateKey}`;
    const partnerKey = `${byPrivateKey.publicKey}.${byPrivateKey.privateKey}`;
    for (const fields of [
      ["authorization", right, "authorization", "Bearer wrong"],
      ["authorization", "Bearer wrong", "Authorization", right],
      ["authorization", right, "x-partner-key", `${partnerKey}x`],
      ["x-partner-key", partnerKey, "x-partner-key", `${partnerKey}x`],
    ]) {
      expect(await send(target(byPrivateKey), fields)).toMatch(/CALLER_NOT_ALLOWED|permission_denied/);
    }
    const rightTwice = ["authorization", right, "Authorization", right, "x-partner-key", partnerKey];
    expect(await send(target(byPrivateKey), rightTwice)).not.toMatch(/CALLER_NOT_ALLOWED|permission_denied/);
  });
});

describe.each(PROTOCOLS)("allowed addresses over %s", (protocol) => {
  const NETWORK = "192.0.2.0/24";
  let local: TestApplication;
  let remote: TestApplication;

  beforeAll(async () => {
    local = await harness.createApplication({ allowedAddresses: ["10.0.0.0/8", "127.0.0.1"] });
    remote = await harness.createApplication({ allowedAddresses: [NETWORK, "2001:db8::/32"] });
    for (const application of [local, remote]) await harness.connect(application, "ada");
  });

  const from = (url: string, application: TestApplication, forwarded?: string) =>
    callerOf(
      url,
      protocol,
    )(callAs(application, forwarded === undefined ? {} : { outerHeaders: { "x-forwarded-for": forwarded } }));

  it("judge the peer, whatever it claims, when no proxy is trusted", async () => {
    expect(await from(harness.url, remote)).toMatchObject(DENIED);
    expect(await from(harness.url, remote, "192.0.2.7")).toMatchObject(DENIED);
    expect(await from(harness.url, local)).toMatchObject(ALLOWED);
    expect(await from(harness.url, local, "203.0.113.9")).toMatchObject(ALLOWED);
  });

  it("judge the address that the trusted proxy saw, not the ones that the client wrote before it", async () => {
    const relay = await startSecondRelay(harness, { RELAY_TRUSTED_PROXIES: "127.0.0.1" });
    const { url } = relay;
    for (const forged of ["192.0.2.7, 203.0.113.9", "192.0.2.7,203.0.113.9", "127.0.0.1, 203.0.113.9", "203.0.113.9"]) {
      expect(await from(url, remote, forged)).toMatchObject(DENIED);
      expect(await from(url, local, forged)).toMatchObject(DENIED);
    }
    for (const odd of ["unknown", "192.0.2.7:", "192.0.2", "192.0.2.7/24", "_hidden", "[2001:db8::1"]) {
      expect(await from(url, remote, odd)).toMatchObject(DENIED);
    }
    const written = ["192.0.2.7", "203.0.113.9, 192.0.2.7", " 192.0.2.7 ", "::ffff:192.0.2.7", "2001:db8::7"];
    for (const real of [...written, "192.0.2.7:443", "[2001:db8::1]", "[2001:db8::7]:443"]) {
      expect(await from(url, remote, real)).toMatchObject(ALLOWED);
    }
  });

  it("judge the last address before several trusted proxies", async () => {
    const relay = await startSecondRelay(harness, { RELAY_TRUSTED_PROXIES: "127.0.0.0/8, 198.51.100.0/24" });
    const { url } = relay;
    expect(await from(url, remote, "192.0.2.7, 198.51.100.1, 198.51.100.2")).toMatchObject(ALLOWED);
    expect(await from(url, remote, "192.0.2.7, 203.0.113.9, 198.51.100.1")).toMatchObject(DENIED);
    expect(await from(url, remote, "192.0.2.7, unknown, 198.51.100.1")).toMatchObject(DENIED);
    expect(await from(url, remote, "198.51.100.1, 198.51.100.2")).toMatchObject(DENIED);
  });

  it("judge the peer when a trusted proxy says nothing, or only names trusted proxies", async () => {
    const relay = await startSecondRelay(harness, { RELAY_TRUSTED_PROXIES: "127.0.0.1,198.51.100.0/24" });
    expect(await from(relay.url, local)).toMatchObject(ALLOWED);
    expect(await from(relay.url, remote)).toMatchObject(DENIED);
    expect(await from(relay.url, local, "198.51.100.1")).toMatchObject(ALLOWED);
  });

  it("judge the peer when the proxy is not the one that is trusted", async () => {
    const relay = await startSecondRelay(harness, { RELAY_TRUSTED_PROXIES: "198.51.100.0/24" });
    expect(await from(relay.url, remote, "192.0.2.7")).toMatchObject(DENIED);
    expect(await from(relay.url, local, "192.0.2.7")).toMatchObject(ALLOWED);
  });
});
