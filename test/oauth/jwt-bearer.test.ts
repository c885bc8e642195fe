import { generateKeyPairSync, type KeyObject, randomBytes } from "node:crypto";
import { join } from "node:path";
import { jwtVerify } from "jose";
import { afterAll, beforeAll, describe, expect, it, onTestFinished } from "vitest";
import { DeleteConnectionResponse_Revocation as Revocation } from "../../gen/relay/admin/v1/connection_pb.js";
import { type AdminClients, createAdminClients } from "../admin/admin-bed.js";
import { failure } from "../admin/failure.js";
import { openBrowser } from "../pages/browser.js";
import { linkTo, storedOf } from "../pages/flow.js";
import { exitOf, lineOf, startChild } from "../store/store-for-test.js";
import {
  type AuthorizationServer,
  type RegisteredClient,
  startAuthorizationServer,
} from "../support/authorization-server.js";
import { type Caller, createCallers } from "../support/callers.js";
import { type Harness, startHarness, type TestApplication } from "../support/harness.js";
import { thin } from "../support/long.js";
import { type RecordingProvider, startRecordingProvider } from "../support/recording-provider.js";
import { startWebhookReceiver } from "../support/webhook-receiver.js";

const RSA = generateKeyPairSync("rsa", { modulusLength: 2048 });
const EC = generateKeyPairSync("ec", { namedCurve: "P-256" });
const HMAC = randomBytes(32).toString("hex");
const PASSPHRASE = "CANARY phrase";
const KEY_ID = "key-1";
const pemOf = (key: KeyObject) => key.export({ type: "pkcs8", format: "pem" }).toString();
const pem = pemOf(RSA.privateKey);

/** Tokens that the API takes no more. */
const refused = new Set<string>();
/** Names that were asked for. */
const resolved: string[] = [];
let server: AuthorizationServer;
let watcher: RegisteredClient;
let clientId: string;
let keyClientId: string;
let api: RecordingProvider;
let signedApi: RecordingProvider;
let odd: RecordingProvider;
let harness: Harness;
let peerUrl: string;
let application: TestApplication;

beforeAll(async () => {
  server = await startAuthorizationServer();
  watcher = await server.registerForCredentials();
  ({ client_id: clientId } = await server.registerForAssertions());
  ({ client_id: keyClientId } = await server.registerWithKey(EC.publicKey, "ES256"));
  server.signers.set(KEY_ID, RSA.publicKey);
  api = await startRecordingProvider(async (request) => {
    const token = request.headers.authorization?.replace("Bearer ", "") ?? "";
    const isGood = token !== "" && !refused.has(token) && (await server.isActive(watcher, token));
    return { statusCode: isGood ? 200 : 401, body: JSON.stringify(request) };
  });
  signedApi = await startRecordingProvider(async ({ headers }) => {
    const token = headers.authorization?.replace("Signed ", "") ?? "";
    const rules = { audience: "/admin/", requiredClaims: ["exp", "iat"] };
    const isGood = await jwtVerify(token, Buffer.from(HMAC, "hex"), rules).catch(() => undefined);
    return { statusCode: isGood === undefined ? 401 : 200, body: JSON.stringify(isGood ?? {}) };
  });
  odd = await startRecordingProvider(({ target }) => {
    if (target !== "/token") return { body: "{}" };
    return { body: '{"access_token":"CANARY_odd","expires_in":3600,"refresh_token":"CANARY_stray","region":"eu"}' };
  });
  harness = await startHarness({
    providers: definitions(),
    upstream: {
      resolve: async (hostname) => {
        if (hostname === "localhost") return [{ address: "127.0.0.1", family: 4 }];
        resolved.push(hostname);
        throw new Error("there is no name service in a test");
      },
    },
  });
  application = await harness.createApplication();
  peerUrl = await harness.startPeer();
});
afterAll(async () => {
  await harness.close();
  await server.close();
  await api.close();
  await signedApi.close();
  await odd.close();
});

function definitions(): readonly object[] {
  const tokenEndpoint = `${server.origin}/token`;
  const key = { name: "signing_key", label: "Private key", help: "The whole file.", keyFileMember: "private_key" };
  return [
    {
      ...{ name: "jb", displayName: "Signers", kind: "jwt_bearer", apiOrigins: [api.origin] },
      connectionValues: [
        key,
        { name: "passphrase", label: "Passphrase", secret: true, optional: true, keyFileMember: "auth.passphrase" },
        { name: "client_id", label: "Client", keyFileMember: "client.id" },
        { name: "key_id", label: "Key", keyFileMember: "client.key" },
        { name: "subject", label: "User", optional: true },
      ],
      oauth2: {
        ...{ tokenEndpoint, revocationEndpoint: `${server.origin}/token/revocation`, clientAuthentication: "none" },
        assertion: {
          algorithm: "RS256",
          header: { kid: "{key_id}" },
          claims: { iss: "{client_id}", sub: "{subject}", aud: tokenEndpoint, scope: "a b" },
          jti: true,
        },
      },
    },
    {
      ...{ name: "jb-client", kind: "jwt_bearer", apiOrigins: [api.origin] },
      connectionValues: [{ name: "client_id" }],
      oauth2: {
        tokenEndpoint,
        assertion: {
          ...{ algorithm: "ES256", jti: true, use: "client_authentication" },
          claims: { iss: "{client_id}", sub: "{client_id}", aud: server.origin },
        },
      },
    },
    {
      ...{ name: "jb-odd", kind: "jwt_bearer", apiOrigins: [odd.origin] },
      connectionValues: [
        { name: "client_id" },
        { name: "client_secret", secret: true },
        { name: "region", tokenMember: "region" },
      ],
      defaultHeaders: { "x-region": "{region}" },
      oauth2: {
        ...{ tokenEndpoint: `${odd.origin}/token`, clientAuthentication: "client_secret_post" },
        ...{ defaultScopes: ["a", "b"], tokenParameters: { leak: "{signing_key}", user: "{client_id}" } },
        assertion: { algorithm: "PS256", claims: { iss: "{client_id}" }, lifetimeSeconds: 60 },
      },
    },
    {
      ...{ name: "jb-host", kind: "jwt_bearer", apiOrigins: ["https://{instance}.jb.example"] },
      oauth2: {
        tokenEndpoint: "https://{instance}.jb.example/token",
        assertion: { algorithm: "RS256", claims: { iss: "{instance}" } },
      },
    },
    {
      ...{ name: "jb-signed", kind: "jwt_bearer", apiOrigins: [signedApi.origin] },
      connectionValues: [{ name: "key_id", label: "Key" }],
      credential: { header: "authorization", scheme: "Signed" },
      oauth2: {
        assertion: {
          ...{ algorithm: "HS256", header: { kid: "{key_id}" }, claims: { aud: "/admin/" }, use: "access_token" },
        },
      },
    },
  ];
}

const keyOf = (userId: string, providerName = "jb", { publicKey } = application) => ({
  publicKey,
  userId,
  providerName,
});
const own = (secrets: object = {}, more: object = {}) => ({
  originParameters: { client_id: clientId, key_id: KEY_ID, ...more },
  secrets: { signing_key: pem, ...secrets },
});
const tokenRequests = () => server.tokenRequests.filter((grant) => grant.includes("jwt-bearer")).length;
const sentToken = () => api.requests.at(-1)?.headers.authorization?.slice("Bearer ".length) ?? "";

/** As if its token had ended. */
async function expire(userId: string, providerName = "jb"): Promise<void> {
  const stored = await storedOf(harness, application, userId, providerName);
  if (stored === undefined) throw new Error("not connected");
  expect(stored.expiresAt).toBeGreaterThan(Date.now());
  await harness.store.connections.put({ ...stored, obtainedAt: 1, expiresAt: 2 }, Date.now());
}

describe.each(
  thin([
    ["connect", "REST"],
    ["grpc", "gRPC"],
  ]),
)("a connection with a signing key, put over %s and called over %s", (protocol, surface) => {
  let connections: AdminClients["connections"];
  let call: Caller;
  beforeAll(() => {
    connections = createAdminClients(harness, protocol).connections;
    call = createCallers(harness.url).find(([name]) => name === surface)?.[1] as Caller;
  });
  const callAs = (userId: string, providerName = "jb", origin = api.origin) =>
    call({ ...keyOf(userId, providerName), call: { url: `${origin}/v1`, method: "GET" } });

  it("gets a token with the first call, keeps it, gets another when it ends, and revokes it", async () => {
    const key = keyOf(`ada-${protocol}`);
    const put = await connections.putConnection({ ...key, ...own({}, { subject: 'ada "{key_id}" ü' }) });
    expect(put).toMatchObject({ hasRefreshToken: true, tokenType: "jwt_bearer" });
    expect(JSON.stringify(put.originParameters)).not.toContain("KEY-----");
    const before = tokenRequests();
    for (let at = 0; at < 3; at++) expect(await callAs(key.userId)).toMatchObject({ statusCode: 200 });
    expect(tokenRequests() - before).toBe(1);
    const { header, claims } = server.assertions.at(-1) as AuthorizationServer["assertions"][number];
    expect(header).toEqual({ alg: "RS256", typ: "JWT", kid: KEY_ID });
    expect(claims).toMatchObject({ iss: clientId, sub: 'ada "{key_id}" ü', scope: "a b" });
    expect(Number(claims.exp) - Number(claims.iat)).toBe(300);
    await expire(key.userId);
    // A relay on PostgreSQL hears of the change a moment later.
    const requestsAfterCall = async () => {
      expect(await callAs(key.userId)).toMatchObject({ statusCode: 200 });
      return tokenRequests() - before;
    };
    await expect.poll(requestsAfterCall).toBe(2);
    const token = sentToken();
    expect(await connections.deleteConnection(key)).toMatchObject({ revocation: Revocation.REVOKED });
    expect(await server.isActive(watcher, token)).toBe(false);
  });

  it("gets another token when the API refuses the one it has", async () => {
    const key = keyOf(`bob-${protocol}`);
    await connections.putConnection({ ...key, ...own() });
    await callAs(key.userId);
    refused.add(sentToken());
    const before = tokenRequests();
    expect(await callAs(key.userId)).toMatchObject({ statusCode: 200 });
    expect(tokenRequests() - before).toBe(1);
  });

  it("ends when its key is no longer known, says so, and works again after a new one", async () => {
    const key = keyOf(`eve-${protocol}`);
    server.signers.set("old", RSA.publicKey);
    await connections.putConnection({ ...key, ...own({}, { key_id: "old" }) });
    expect(await callAs(key.userId)).toMatchObject({ statusCode: 200 });
    server.signers.delete("old");
    await expire(key.userId);
    await expect
      .poll(() => callAs(key.userId))
      .toMatchObject({ pincStatus: "error", statusCode: 401, errorType: "REAUTHORIZATION_REQUIRED" });
    expect(await connections.getConnection(key)).toMatchObject({ stateReason: "invalid_grant" });
    // Nobody else's key is doubted over it.
    await connections.putConnection({ ...keyOf(`well-${protocol}`), ...own() });
    expect(await callAs(`well-${protocol}`)).toMatchObject({ statusCode: 200 });
    await connections.putConnection({ ...key, ...own() });
    expect(await callAs(key.userId)).toMatchObject({ statusCode: 200 });
  });

  it("proves a client by what it signs (RFC 7523 section 2.2), and ends when it is refused", async () => {
    const key = keyOf(`client-${protocol}`, "jb-client");
    const put = (signingKey: string) =>
      connections.putConnection({
        ...{ ...key, originParameters: { client_id: keyClientId } },
        secrets: { signing_key: signingKey },
      });
    await put(pemOf(EC.privateKey));
    expect(await callAs(key.userId, "jb-client")).toMatchObject({ statusCode: 200 });
    await put(pemOf(generateKeyPairSync("ec", { namedCurve: "P-256" }).privateKey));
    expect(await callAs(key.userId, "jb-client")).toMatchObject({ errorType: "REAUTHORIZATION_REQUIRED" });
    expect(await connections.getConnection(key)).toMatchObject({ stateReason: "invalid_client" });
  });

  it("sends what it signs where that is the token, asks nobody for one, and signs another when it ends", async () => {
    const key = keyOf(`signed-${protocol}`, "jb-signed");
    await connections.putConnection({ ...key, originParameters: { key_id: "k" }, secrets: { signing_key: HMAC } });
    const before = server.tokenRequests.length;
    const sent = async () => {
      expect(await callAs(key.userId, "jb-signed", signedApi.origin)).toMatchObject({ statusCode: 200 });
      return signedApi.requests.at(-1)?.headers.authorization ?? "";
    };
    const first = await sent();
    expect(await sent()).toBe(first);
    expect(first).toMatch(/^Signed eyJ[\w-]+\.eyJ[\w-]+\.[\w-]+$/);
    await expire(key.userId, "jb-signed");
    const endAfterCall = async () => {
      await sent();
      return (await storedOf(harness, application, key.userId, "jb-signed"))?.expiresAt;
    };
    await expect.poll(endAfterCall).toBeGreaterThan(Date.now());
    expect(server.tokenRequests.length).toBe(before);
    expect(await connections.deleteConnection(key)).toMatchObject({ revocation: Revocation.NOT_SUPPORTED });
  });

  const long = "CANARY".repeat(11_000);
  const body = pem.split("\n").slice(1, -2).join("\n");
  const weak = generateKeyPairSync("rsa", { modulusLength: 1024 }).privateKey;
  it.each([
    ["no key", {}, "secrets.signing_key", "is missing"],
    ["text", { signing_key: "CANARY-key" }, "secrets.signing_key", "in PEM"],
    ["a header break", { signing_key: `CANARY\r\nx-evil: 1\r\n${pem.slice(0, 60)}` }, "secrets.signing_key", "in PEM"],
    ["a template", { signing_key: "{client_id}" }, "secrets.signing_key", "not a key file"],
    ["JSON that is no key file", { signing_key: '{"a":"CANARY"}' }, "secrets.signing_key", "not a key file"],
    ["a key file with text for a key", { signing_key: '{"private_key":"CANARY"}' }, "secrets.signing_key", "in PEM"],
    ["64 KiB", { signing_key: long }, "secrets.signing_key", "16384"],
    [
      "64 KiB in PEM",
      { signing_key: `-----BEGIN PRIVATE KEY-----${long}-----END PRIVATE KEY-----` },
      "secrets.signing_key",
      "16384",
    ],
    [
      "a key cut short",
      { signing_key: pem.replace(body, body.slice(0, 400)) },
      "secrets.signing_key",
      "cannot be read",
    ],
    ["a key of another algorithm", { signing_key: pemOf(EC.privateKey) }, "secrets.signing_key", "must be an RSA key"],
    ["a key whose reading takes seconds", { signing_key: dsa(8000) }, "secrets.signing_key", "2560 bytes"],
    ["a key of a kind that is worked out", { signing_key: dsa(1000) }, "secrets.signing_key", "must be an RSA key"],
    ["a weak key", { signing_key: pemOf(weak) }, "secrets.signing_key", "2048 to 4096 bits"],
    [
      "a public key",
      { signing_key: RSA.publicKey.export({ type: "spki", format: "pem" }).toString() },
      "secrets.signing_key",
      "in PEM",
    ],
    ["an encrypted key alone", { signing_key: locked() }, "secrets.passphrase", "is missing"],
    ["a wrong passphrase", { signing_key: locked(), passphrase: "CANARY" }, "secrets.passphrase", "does not open"],
    ["a passphrase of 64 KiB", { signing_key: locked(), passphrase: long }, "secrets.passphrase", "16384"],
    [
      "a key that takes seconds to open",
      { signing_key: lockedWith(20_000_000), passphrase: PASSPHRASE },
      "secrets.signing_key",
      "the relay does not support",
    ],
    [
      "one round too many",
      { signing_key: lockedWith(10_001), passphrase: PASSPHRASE },
      "secrets.signing_key",
      "the relay does not support",
    ],
    // It is tried, and was encrypted with fewer.
    [
      "as many rounds as are tried",
      { signing_key: lockedWith(10_000), passphrase: PASSPHRASE },
      "secrets.passphrase",
      "does not open",
    ],
  ])("refuses %s, names the field and stores nothing", async (_, secrets, field, problem) => {
    const key = keyOf(`mallory-${protocol}`);
    const told = await failure(connections.putConnection({ ...key, ...own(), secrets }));
    expect(told).toEqual({ code: "InvalidArgument", field, message: expect.stringContaining(problem) });
    for (const secret of ["CANARY", body.slice(0, 16), body.slice(64, 80)]) expect(told.message).not.toContain(secret);
    expect(await failure(connections.getConnection(key))).toMatchObject({ code: "NotFound" });
  });

  it.each([
    ["client_id", "a\r\nb", "line breaks"],
    ["subject", "a\u0000b", "control characters"],
    ["key_id", "k".repeat(64 * 1024), "1024"],
    ["host", "evil.example", "takes client_id, key_id, subject"],
  ])("refuses a bad %s, and stores nothing", async (name, text, problem) => {
    const key = keyOf(`mallory-${protocol}`);
    const told = await failure(connections.putConnection({ ...key, ...own({}, { [name]: text }) }));
    const field = `origin_parameters.${name}`;
    expect(told).toEqual({ code: "InvalidArgument", field, message: expect.stringContaining(problem) });
    expect(await failure(connections.getConnection(key))).toMatchObject({ code: "NotFound" });
  });
});

/** The key as OpenSSL encrypts it. */
function locked(): string {
  const lock = { type: "pkcs8", format: "pem", cipher: "aes-256-cbc", passphrase: PASSPHRASE } as const;
  return RSA.privateKey.export(lock).toString();
}

/** PKCS #8 of DSA with a modulus of so many bytes, cut short behind it. */
function dsa(bytes: number): string {
  const sequence = (...parts: Buffer[]) => tagged(0x30, Buffer.concat(parts));
  const tagged = (tag: number, value: Buffer) =>
    Buffer.concat([Buffer.from([tag, 0x82, value.length >> 8, value.length & 255]), value]);
  const version = Buffer.from("020100", "hex");
  const algorithm = Buffer.from("3013".concat("06072a8648ce380401"), "hex");
  const key = sequence(version, algorithm, tagged(0x02, Buffer.alloc(bytes, 0x7f)));
  return `-----BEGIN PRIVATE KEY-----\n${key.toString("base64")}\n-----END PRIVATE KEY-----\n`;
}

/** The same, said to be hashed so many times: in two bytes as before, or in four. */
function lockedWith(rounds: number): string {
  const lock = { type: "pkcs8", format: "der", cipher: "aes-256-cbc", passphrase: PASSPHRASE } as const;
  const der = Buffer.from(RSA.privateKey.export(lock));
  const at = der.indexOf(Buffer.from("02020800", "hex"));
  const count = Buffer.alloc(rounds < 2 ** 15 ? 4 : 6);
  count.set([2, count.length - 2]);
  count.writeUIntBE(rounds, 2, count.length - 2);
  const more = count.length - 4;
  // Each sequence that the number is in.
  der.writeUInt16BE(der.readUInt16BE(2) + more, 2);
  for (const length of [5, 18, 20, 33]) der.writeUInt8(der.readUInt8(length) + more, length);
  const changed = Buffer.concat([der.subarray(0, at), count, der.subarray(at + 4)]);
  return `-----BEGIN ENCRYPTED PRIVATE KEY-----\n${changed.toString("base64")}\n-----END ENCRYPTED PRIVATE KEY-----`;
}

describe("a signing key", () => {
  const put = (userId: string, secrets: object, originParameters: Record<string, string> = own().originParameters) =>
    createAdminClients(harness).connections.putConnection({ ...keyOf(userId), originParameters, secrets } as never);
  const callAt = (url: string, userId: string) => {
    const [, call] = createCallers(url)[0] as readonly [string, Caller];
    return call({ ...keyOf(userId), call: { url: `${api.origin}/v1`, method: "GET" } });
  };
  const pkcs1 = RSA.privateKey.export({ type: "pkcs1", format: "pem" }).toString();
  const keyFile = () => JSON.stringify({ private_key: pem, client: { id: clientId, key: KEY_ID }, type: "x" });

  it.each([
    ["PKCS #8", { signing_key: pem }],
    ["PKCS #1", { signing_key: pkcs1 }],
    ["one line, as a form makes it", { signing_key: pem.replaceAll("\n", "") }],
    ["one line, as it stands in JSON", { signing_key: JSON.stringify(pem).slice(1, -1) }],
    ["line ends of another system, and text around it", { signing_key: `Bag\r\n${pem.replaceAll("\n", "\r\n")}` }],
    ["encrypted", { signing_key: locked(), passphrase: PASSPHRASE }],
    ["the form in which it is stored, and exported", { signing_key: pem.replaceAll(/-----.*-----|\n/g, "") }],
  ])("is taken in %s, and stored as one line that nothing has to open", async (name, secrets) => {
    await put(`form ${name}`, secrets);
    expect(await callAt(harness.url, `form ${name}`)).toMatchObject({ statusCode: 200 });
    const stored = await storedOf(harness, application, `form ${name}`, "jb");
    expect(Buffer.from(stored?.refreshToken ?? []).toString("latin1")).not.toContain("signing_key");
  });

  it("comes with the values that its file has, but for those that are given", async () => {
    await put("file", { signing_key: keyFile() }, { subject: "ada" });
    expect(await callAt(harness.url, "file")).toMatchObject({ statusCode: 200 });
    expect(server.assertions.at(-1)?.claims.sub).toBe("ada");
    const given = await put("file-2", { signing_key: keyFile() }, { key_id: "other" });
    expect(given.originParameters).toEqual({ client_id: clientId, key_id: "other" });
    const broken = JSON.stringify({ private_key: pem, client: { id: "a\r\nb", key: KEY_ID } });
    const told = await failure(put("file-3", { signing_key: broken }, {}));
    expect(told).toMatchObject({
      field: "origin_parameters.client_id",
      message: expect.stringContaining("line breaks"),
    });
  });

  it("goes into no request, and its token's answer takes the place of neither it nor what else stands with it", async () => {
    const key = keyOf("odd", "jb-odd");
    await createAdminClients(harness).connections.putConnection({
      ...{ ...key, originParameters: { client_id: "machine" } },
      secrets: { signing_key: pem, client_secret: "CANARY_secret" },
    });
    const [, call] = createCallers(harness.url)[0] as readonly [string, Caller];
    const tokenRequestsAfterCall = async () => {
      const row = await call({ ...key, call: { url: `${odd.origin}/v1`, method: "GET" } });
      expect(row).toMatchObject({ statusCode: 200 });
      return odd.requests.filter(({ target }) => target === "/token").length;
    };
    for (let at = 1; at <= 2; at++) {
      await expect.poll(tokenRequestsAfterCall).toBe(at);
      const [token, request] = odd.requests.slice(-2);
      const { assertion = "", ...others } = Object.fromEntries(new URLSearchParams(token?.body));
      expect(others).toEqual({
        ...{ grant_type: "urn:ietf:params:oauth:grant-type:jwt-bearer", scope: "a b", user: "machine" },
        ...{ client_id: "machine", client_secret: "CANARY_secret" },
      });
      const { protectedHeader, payload } = await jwtVerify(assertion, RSA.publicKey, { issuer: "machine" });
      expect([protectedHeader, Number(payload.exp) - Number(payload.iat)]).toEqual([{ alg: "PS256", typ: "JWT" }, 60]);
      expect(request?.headers).toMatchObject({ authorization: "Bearer CANARY_odd", "x-region": "eu" });
      await expire("odd", "jb-odd");
    }
  });

  it("is used once for all calls of all relays that want a token at the same time", async () => {
    await put("crowd", own().secrets);
    const before = tokenRequests();
    const calls = Array.from({ length: 12 }, (_, at) => callAt(at % 2 === 0 ? harness.url : peerUrl, "crowd"));
    for (const row of await Promise.all(calls)) expect(row).toMatchObject({ statusCode: 200 });
    expect(tokenRequests() - before).toBe(1);
  });

  it("is used by another relay when one is killed between the answer and the commit", async () => {
    await put("killed", own().secrets);
    const stored = await storedOf(harness, application, "killed", "jb");
    if (stored === undefined) throw new Error("not connected");
    const child = startChild({ file: "child-spool.ts" }, join(harness.folder, "spool"), harness.store.id, "nothing");
    const owner = (await lineOf(child, "owner ")).slice("owner ".length);
    expect(await harness.store.connections.takeLease(stored, owner, 120_000)).toBeDefined();
    child.kill("SIGKILL");
    await exitOf(child);
    expect(await callAt(peerUrl, "killed")).toMatchObject({ statusCode: 200 });
  });

  it.each([
    "evil.example/",
    "evil.example#",
    "a@evil.example",
    "acm\u0435",
    "{signing_key}",
    "..",
    "a\r\nhost: evil.example",
    "a".repeat(64 * 1024),
  ])("is stored for no host that %j makes, and shown to none", async (instance) => {
    const key = keyOf("mallory", "jb-host");
    const given = { ...key, originParameters: { instance }, secrets: { signing_key: pem } };
    expect(await failure(createAdminClients(harness).connections.putConnection(given))).toMatchObject({
      ...{ code: "InvalidArgument", field: "origin_parameters.instance" },
    });
    expect(resolved).toEqual([]);
  });

  it("is used at the host of its own connection", async () => {
    const key = keyOf("ada", "jb-host");
    const given = { ...key, originParameters: { instance: "acme" }, secrets: { signing_key: pem } };
    await createAdminClients(harness).connections.putConnection(given);
    const [, call] = createCallers(harness.url)[0] as readonly [string, Caller];
    const at = (url: string) => call({ ...key, call: { url, method: "GET" } });
    expect(await at("https://evil.jb.example/v1")).toMatchObject({ errorType: "URL_NOT_ALLOWED" });
    expect(resolved).toEqual([]);
    expect(await at("https://acme.jb.example/v1")).toMatchObject({ errorType: "REFRESH_UNAVAILABLE" });
    expect(new Set(resolved)).toEqual(new Set(["acme.jb.example"]));
  });

  it("that is no longer known is told of by webhook, once", async () => {
    const receiver = await startWebhookReceiver();
    onTestFinished(() => receiver.close());
    const { publicKey } = application;
    await createAdminClients(harness).webhooks.putWebhook({ webhook: { publicKey, uri: receiver.url } });
    await put("told", { signing_key: pem }, { client_id: clientId, key_id: "never" });
    expect(await callAt(harness.url, "told")).toMatchObject({ errorType: "REAUTHORIZATION_REQUIRED" });
    const events = (await receiver.arrived(2)).map(({ body }) => JSON.parse(body));
    expect(events.map(({ type }) => type)).toEqual(["connection.created", "connection.reauthorization_required"]);
    expect(events[1].data).toEqual({
      ...{ public_key: publicKey, user_id: "told", provider_name: "jb", reason: "invalid_grant" },
    });
    await createAdminClients(harness).webhooks.deleteWebhook({ publicKey });
  });

  it("may be entered on a page, in a field of several lines that shows it to nobody again", async () => {
    const at = `${harness.url}/oauth/connect/jb`;
    const enter = async (userId: string, fields: Record<string, string>) => {
      const browser = openBrowser();
      const asked = await browser.visit(await linkTo(harness, application, userId, { provider_name: "jb" }));
      const [, session = ""] = /name="session" value="([\w-]+)"/.exec(asked.body) ?? [];
      return { asked, done: await browser.post(at, { session, ...fields }) };
    };
    const { asked, done } = await enter("form", { signing_key: keyFile().replace(/\\n/g, "\\r\\n") });
    expect(asked.body).toMatch(/<textarea id="signing_key" name="signing_key" required[^>]*><\/textarea>/);
    // It may stand in the file.
    expect(asked.body).not.toMatch(/name="client_id" required/);
    expect([done.status, done.body.includes("Signers is connected")]).toEqual([200, true]);
    expect(await callAt(harness.url, "form")).toMatchObject({ statusCode: 200 });
    const { done: wrong } = await enter("form-2", { signing_key: `CANARY ${pem.slice(0, 200)}`, client_id: "<b>" });
    expect([wrong.status, wrong.body.includes("Private key is not valid")]).toEqual([400, true]);
    for (const secret of ["CANARY", pem.slice(64, 80), "<b>"]) expect(wrong.body).not.toContain(secret);
    expect(await storedOf(harness, application, "form-2", "jb")).toBeUndefined();
  });

  it("is explained as one that a token is got for first", async () => {
    await put("explained", own().secrets);
    const call = { ...keyOf("explained"), call: { url: `${api.origin}/v1`, method: "GET" } };
    const explained = await createAdminClients(harness).calls.explainCall({ call });
    expect(explained.refusal).toBeUndefined();
    expect(explained.request?.headers.find(({ name }) => name === "authorization")?.value).toBe("Bearer ***");
  });
});

describe("what was logged of all this", () => {
  it("has no key and no passphrase", () => {
    const text = harness.logLines.join("\n");
    for (const secret of ["CANARY", HMAC, pem.split("\n")[1] ?? "", pem.split("\n")[9] ?? ""])
      expect(text).not.toContain(secret);
  });
});
