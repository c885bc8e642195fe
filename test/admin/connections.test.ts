import { randomUUID } from "node:crypto";
import { timestampFromMs } from "@bufbuild/protobuf/wkt";
import { afterAll, beforeAll, describe, expect, it, onTestFinished } from "vitest";
import {
  type Connection,
  DeleteConnectionResponse_Revocation as Revocation,
  Connection_State as State,
} from "../../gen/relay/admin/v1/connection_pb.js";
import { postRest } from "../support/callers.js";
import { type Harness, startHarness, type TestApplication } from "../support/harness.js";
import { FAILING, failRefresh } from "../support/refresh-failure.js";
import { type AdminClients, createAdminClients } from "./admin-bed.js";
import { failure } from "./failure.js";

const ACTIVE = State.ACTIVE;
const ENDED = State.REAUTHORIZATION_REQUIRED;

let harness: Harness;
let application: TestApplication;
beforeAll(async () => {
  harness = await startHarness({
    providers: [{ name: "shop", aliases: ["store"], apiOrigins: ["https://{shop}.example.com"] }],
  });
  application = await harness.createApplication();
});
afterAll(() => harness.close());

describe.each(["connect", "grpc"] as const)("ConnectionService over %s", (protocol) => {
  let connections: AdminClients["connections"];
  beforeAll(() => {
    connections = createAdminClients(harness, protocol).connections;
  });

  it("stores tokens that no answer has and calls use, and ends them at the provider", async () => {
    const key = { publicKey: application.publicKey, userId: `ada/${protocol} é`, providerName: "sandbox" };
    const tokens = harness.sandbox.issueToken();
    const put = await connections.putConnection({ ...key, tokenResponse: JSON.stringify(tokens) });
    expect(put).toMatchObject({ ...key, state: ACTIVE, hasRefreshToken: true, createTime: expect.anything() });
    const shown = await connections.getConnection(key);
    expect(shown).toEqual(put);
    for (const token of [tokens.access_token, tokens.refresh_token])
      expect(JSON.stringify(Object.values(shown), printed)).not.toContain(token);
    const call = { url: `${harness.sandbox.origin}/me`, method: "GET" };
    expect((await postRest(harness.url, { ...key, call })).text).toContain('"pincStatus":"success"');
    await harness.putClient(application);
    expect(await connections.deleteConnection(key)).toMatchObject({ revocation: Revocation.REVOKED });
    expect((await postRest(harness.url, { ...key, call })).text).toContain("INVALID_OAUTHID");
    for (const told of await Promise.all(
      [connections.getConnection(key), connections.deleteConnection(key)].map(failure),
    ))
      expect(told).toMatchObject({ code: "NotFound" });
    await connections.putConnection({ ...key, tokenResponse: '{"access_token":"a"}' });
    const skipped = await connections.deleteConnection({ ...key, skipRevocation: true });
    expect(skipped.revocation).toBe(Revocation.SKIPPED);
  });

  it.each([
    [{ tokenResponse: "" }, "token_response", "is missing"],
    [{ tokenResponse: "CANARY" }, "token_response", "is invalid"],
    [{ tokenResponse: '{"access_token":"CANARY","expires_in":-5}' }, "token_response", "expires_in must be a number"],
    [{ tokenResponse: '{"access_token":"CANARY é"}' }, "token_response", "access_token"],
    [{ tokenResponse: `{"access_token":"${"CANARY".repeat(11_000)}"}` }, "token_response", "64 KiB"],
    [{ userId: "" }, "user_id", "is missing"],
    [{ userId: "u".repeat(257) }, "user_id", "is longer"],
    [{ originParameters: {} }, "origin_parameters.shop", "is missing"],
  ])("refuses %o, names the field and quotes nothing", async (patch, field, problem) => {
    const key = { publicKey: application.publicKey, userId: "eve", providerName: "store" };
    const whole = { ...key, originParameters: { shop: "acme" }, tokenResponse: '{"access_token":"a"}' };
    const told = await failure(connections.putConnection({ ...whole, ...patch }));
    expect(told).toEqual({ code: "InvalidArgument", field, message: expect.stringContaining(problem) });
    expect(told.message).not.toContain("CANARY");
  });

  it.each([{ publicKey: "nobody's" }, { providerName: "nothing" }])("stores nothing for %o", async (patch) => {
    const key = { publicKey: application.publicKey, userId: "eve", providerName: "sandbox", ...patch };
    const call = connections.putConnection({ ...key, tokenResponse: '{"access_token":"a"}' });
    expect(await failure(call)).toMatchObject({ code: "NotFound" });
  });

  it("tells since when refreshing fails, with the last answer and the next try", async () => {
    const key = { publicKey: application.publicKey, userId: `failing/${protocol}`, providerName: "sandbox" };
    await connections.putConnection({ ...key, tokenResponse: JSON.stringify(harness.sandbox.issueToken()) });
    await failRefresh(harness.store, { ...key, applicationId: application.id });
    expect(await connections.getConnection(key)).toMatchObject({
      state: ACTIVE,
      refreshFailureCount: 1,
      refreshFailingTime: timestampFromMs(FAILING.since),
      lastRefreshFailureTime: timestampFromMs(FAILING.lastAt),
      lastRefreshFailure: "server_error",
      nextRefreshTime: expect.anything(),
    });
    await connections.deleteConnection({ ...key, skipRevocation: true });
  });

  it("still deletes what is stored for a provider that is gone", async () => {
    await harness.connect(application, "ada", { providerName: "gone" });
    const key = { publicKey: application.publicKey, userId: "ada", providerName: "gone" };
    const { revocation } = await connections.deleteConnection(key);
    expect(revocation).toBe(Revocation.NOT_SUPPORTED);
  });
});

describe("ListConnections", () => {
  const USERS = 700;
  let own: TestApplication;
  let connections: AdminClients["connections"];

  /** Four connections for each user: two states at each of two providers. */
  beforeAll(async () => {
    ({ connections } = createAdminClients(harness));
    own = await harness.createApplication();
    const { store } = harness;
    const tokens = {
      accessToken: Buffer.of(1),
      idToken: undefined,
      tokenType: "Bearer",
      scope: "",
      originParameters: {},
    };
    for (let user = 0; user < USERS; user++) {
      for (const [providerName, expiresAt] of [
        ["github", undefined],
        ["sandbox", 2],
        ["shop", Date.now() + 3_600_000],
        ["zoom", 2],
      ] as const) {
        const refreshToken = providerName === "zoom" ? Buffer.of(2) : undefined;
        const key = { applicationId: own.id, userId: `user-${user}`, providerName };
        const connection = {
          id: randomUUID(),
          ...key,
          ...tokens,
          refreshToken,
          state: "ACTIVE",
          obtainedAt: 1,
          expiresAt,
        } as const;
        await store.connections.put(connection, 1);
      }
    }
    await harness.connect(application, "someone else");
  }, 60_000);

  async function listAll(filter: Parameters<typeof connections.listConnections>[0], pageSize = 500) {
    const found: Connection[] = [];
    let pageToken = "";
    let pages = 0;
    do {
      const page = await connections.listConnections({ publicKey: own.publicKey, ...filter, pageSize, pageToken });
      expect(page.connections.length).toBeLessThanOrEqual(pageSize);
      found.push(...page.connections);
      pageToken = page.nextPageToken;
      pages += 1;
    } while (pageToken !== "");
    const keys = found.map(({ userId, providerName }) => `${userId} ${providerName}`);
    expect(new Set(keys).size).toBe(keys.length);
    return { found, keys, pages };
  }

  it("gives each of thousands once, in order", async () => {
    const { found, keys, pages } = await listAll({}, 300);
    expect([found.length, pages]).toEqual([USERS * 4, 10]);
    expect(keys).toEqual(keys.toSorted());
    expect(found.every(({ publicKey }) => publicKey === own.publicKey)).toBe(true);
  });

  it.each([
    ["a user", { userId: "user-7" }, 4],
    ["a prefix", { userIdPrefix: "user-69" }, 11 * 4],
    ["a provider", { providerName: "github" }, USERS],
    ["an alias", { providerName: "store" }, USERS],
    ["connections that ended without a word", { state: ENDED }, USERS],
    ["connections that can be used", { state: ACTIVE }, USERS * 3],
    ["all together", { userIdPrefix: "user-6", providerName: "sandbox", state: ENDED }, 111],
    ["nobody", { userId: "user-" }, 0],
  ])("filters by %s", async (_what, filter, count) => {
    const { found, keys } = await listAll(filter, 250);
    expect(found).toHaveLength(count);
    expect(keys).toEqual(keys.toSorted());
    if ("state" in filter) expect(found.every(({ state }) => state === filter.state)).toBe(true);
  });

  it("lists over all applications", async () => {
    const { found } = await listAll({ publicKey: "" });
    expect(found.filter(({ publicKey }) => publicKey === own.publicKey)).toHaveLength(USERS * 4);
    expect(found.map(({ userId }) => userId)).toContain("someone else");
  });

  it("gives five hundred at most, and a hundred unless it is asked", async () => {
    const { publicKey } = own;
    const sizes = [0, 500, 5000].map((pageSize) => connections.listConnections({ publicKey, pageSize }));
    expect((await Promise.all(sizes)).map((page) => page.connections.length)).toEqual([100, 500, 500]);
  });

  it("goes on where it stood, whatever comes and goes meanwhile", async () => {
    const { publicKey } = own;
    const first = await connections.listConnections({ publicKey, userIdPrefix: "user-3", pageSize: 5 });
    const last = first.connections.at(-1) ?? expect.fail();
    await harness.store.connections.delete(
      { applicationId: own.id, userId: last.userId, providerName: last.providerName },
      1,
    );
    await harness.connect(own, "user-2-late", { providerName: "github" });
    onTestFinished(
      async () =>
        void (await harness.store.connections.delete(
          { applicationId: own.id, userId: "user-2-late", providerName: "github" },
          1,
        )),
    );
    const { nextPageToken: pageToken } = first;
    const second = await connections.listConnections({ publicKey, userIdPrefix: "user-3", pageSize: 3, pageToken });
    expect(second.connections.map(({ userId, providerName }) => `${userId} ${providerName}`)).toEqual([
      "user-30 sandbox",
      "user-30 shop",
      "user-30 zoom",
    ]);
  });

  it("finds a user of whatever application by the id, page by page", async () => {
    const applications = await Promise.all([1, 2, 3].map(() => harness.createApplication()));
    const userId = "somebody é";
    for (const each of applications) {
      await harness.connect(each, userId);
      await harness.connect(each, `${userId}-else`);
    }
    const keys = new Set<string>();
    for (let pageToken = ""; ; ) {
      const page = await connections.listConnections({ userId, pageSize: 2, pageToken });
      expect(page.connections.every((each) => each.userId === userId)).toBe(true);
      for (const { publicKey } of page.connections) keys.add(publicKey);
      pageToken = page.nextPageToken;
      if (pageToken === "") break;
    }
    expect(keys).toEqual(new Set(applications.map(({ publicKey }) => publicKey)));
  });

  it.each([
    [{ publicKey: "", userIdPrefix: "u" }, "public_key"],
    [{ userId: "u", userIdPrefix: "u" }, "user_id_prefix"],
  ])("refuses %o", async (patch, field) => {
    const call = connections.listConnections({ publicKey: own.publicKey, ...patch });
    expect(await failure(call)).toMatchObject({ code: "InvalidArgument", field });
  });
});

describe.each(["connect", "grpc"] as const)("CreateConnectLink over %s", (protocol) => {
  it("makes a link that opens once, of an application that asks for its private key too, and writes it down", async () => {
    const own = await harness.createApplication({ callerAuth: "PRIVATE_KEY" });
    await harness.putClient(own);
    const { connections, audit } = createAdminClients(harness, protocol);
    const request = { publicKey: own.publicKey, userId: "a/b", providerNames: ["sandbox"] };
    const { connectUri, expireTime } = await connections.createConnectLink(request);
    expect(connectUri).toContain(`${harness.url}/oauth/connect/sandbox?link=`);
    expect(expireTime).toBeDefined();
    const open = () => fetch(connectUri, { redirect: "manual" });
    expect([(await open()).status, (await open()).status]).toEqual([200, 403]);
    const { auditRecords } = await audit.listAuditRecords({ publicKey: own.publicKey });
    expect(auditRecords.map(({ actor, method, resource }) => [actor, method, resource])).toEqual([
      ["alice", "relay.admin.v1.ConnectionService.CreateConnectLink", `applications/${own.publicKey}/users/a%2Fb`],
    ]);
    expect(harness.logLines.join("\n")).not.toContain(connectUri.split("=")[1]);
    const page = await connections.createConnectLink({ ...request, providerNames: [] });
    expect(page.connectUri).toContain(`${harness.url}/oauth/connect?link=`);
  });

  it.each([
    [{ userId: "" }, "InvalidArgument", "user_id"],
    [{ providerNames: ["nowhere"] }, "InvalidArgument", "provider_names"],
    [{ providerNames: [""] }, "InvalidArgument", "provider_names"],
    [{ providerNames: ["sandbox", ""] }, "InvalidArgument", "provider_names"],
    [{ providerNames: ["sandbox", "nowhere"] }, "InvalidArgument", "provider_names"],
    [{ redirectUri: "https://elsewhere.example/" }, "InvalidArgument", "redirect_uri"],
    [{ scope: "s".repeat(4097) }, "InvalidArgument", "scope"],
    [{ providerNames: ["shop"] }, "InvalidArgument", "provider_names"],
    [{ providerNames: ["github"] }, "FailedPrecondition", undefined],
    [{ publicKey: "nobody's" }, "NotFound", undefined],
  ])("refuses %o and writes nothing down", async (patch, code, field) => {
    const own = await harness.createApplication();
    await harness.putClient(own);
    const { connections, audit } = createAdminClients(harness, protocol);
    const call = connections.createConnectLink({ publicKey: own.publicKey, userId: "u", ...patch });
    expect(await failure(call)).toMatchObject({ code, field });
    expect((await audit.listAuditRecords({ publicKey: own.publicKey })).auditRecords).toEqual([]);
  });

  it("refuses a disabled application", async () => {
    const { publicKey } = await harness.createApplication({ state: "DISABLED" });
    const { connections } = createAdminClients(harness, protocol);
    const call = connections.createConnectLink({ publicKey, userId: "u" });
    expect(await failure(call)).toMatchObject({ code: "FailedPrecondition" });
  });
});

/** JSON has no bigint. */
function printed(_key: string, value: unknown): unknown {
  return typeof value === "bigint" ? String(value) : value;
}
