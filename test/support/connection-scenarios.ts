import { expect, it } from "vitest";
import { hashPrivateKey, signText } from "../../src/applications/application.js";
import { REASONS, type Reason } from "../../src/model/errors.js";
import {
  type ConnectionCaller,
  type ConnectionMethod,
  type ConnectionOutcome,
  RPC_CODES,
} from "./connection-callers.js";
import type { Harness, TestApplication } from "./harness.js";
import { FAILING, failRefresh } from "./refresh-failure.js";

/** Address on the list of the scenarios' applications. */
const BACK = "https://app.example.com/connected";
const SCOPE = 'a "b" \\é';

/** What the scenarios need of a relay. */
export interface ConnectionBed {
  readonly harness: Harness;
  readonly caller: ConnectionCaller;
  /** `rest`: codes are HTTP statuses; else RPC codes. */
  readonly kind: "rest" | "rpc";
}

/** Starts with one provider of an origin that has a parameter, and one that is taken out of the catalogue. */
export const SCENARIO_PROVIDERS = [
  { name: "shop", aliases: ["old-shop"], apiOrigins: ["https://{shop}.shop.example"] },
] as const;

let users = 0;
const newUser = () => `ü/${++users}\u0000`;

/** The same scenarios over any protocol; `bed` is ready when the tests run. */
export function describeConnections(bed: () => ConnectionBed): void {
  const refused = async (
    method: ConnectionMethod,
    fields: Parameters<ConnectionCaller>[1],
    errorType: Reason,
    headers?: Readonly<Record<string, string>>,
  ): Promise<ConnectionOutcome> => {
    const outcome = await bed().caller(method, fields, headers);
    const code = bed().kind === "rest" ? REASONS[errorType] : RPC_CODES[errorType];
    expect(outcome).toEqual({ errorType, code, message: expect.stringMatching(/^\w.*\.$/) });
    return outcome;
  };
  const named = ({ publicKey }: TestApplication, userId: string) => ({ publicKey, userId });
  const newApplication = (options: Parameters<Harness["createApplication"]>[0] = {}) =>
    bed().harness.createApplication({ allowedRedirectUris: [BACK], ...options });
  const stored = (own: TestApplication, userId: string) =>
    bed().harness.store.connections.list({ applicationId: own.id, userId, limit: 9 });

  it("lists a user's connections with all but their tokens", async () => {
    const own = await newApplication();
    const userId = newUser();
    const tokens = { accessToken: "CANARY_ACCESS_1", refreshToken: "CANARY_REFRESH_1", idToken: "CANARY_ID_1" };
    await bed().harness.connect(own, userId, { ...tokens, expiresAt: Date.now() + 3_600_000 });
    await bed().harness.connect(own, userId, { ...tokens, providerName: "shop", originParameters: { shop: "acme" } });
    await bed().harness.connect(own, `${userId} `);
    await bed().harness.connect(await newApplication(), userId);
    const outcome = await bed().caller("listConnections", named(own, userId));
    const time = expect.stringMatching(/^\d{4}-\d\d-\d\dT[\d:.]+Z$/);
    const connection = {
      state: "ACTIVE",
      stateReason: "",
      scope: "",
      originParameters: {},
      createTime: time,
      updateTime: time,
      refreshFailureCount: 0,
      lastRefreshFailure: "",
    };
    expect(outcome).toEqual({
      answer: {
        connections: [
          { ...connection, providerName: "sandbox", expireTime: time },
          { ...connection, providerName: "shop", originParameters: { shop: "acme" } },
        ],
      },
    });
    expect(JSON.stringify(outcome)).not.toContain("CANARY");
  });

  it("tells the truth about a token that has ended", async () => {
    const own = await newApplication();
    await bed().harness.connect(own, "ada", { expiresAt: 1 });
    expect(await bed().caller("listConnections", named(own, "ada"))).toMatchObject({
      answer: { connections: [{ state: "REAUTHORIZATION_REQUIRED", stateReason: "expired" }] },
    });
  });

  it("tells since when refreshing fails, with the last answer and the next try", async () => {
    const { harness, caller } = bed();
    const own = await newApplication();
    await harness.connect(own, "ada", { refreshToken: "r" });
    await failRefresh(harness.store, { applicationId: own.id, userId: "ada", providerName: "sandbox" });
    expect(await caller("listConnections", named(own, "ada"))).toMatchObject({
      answer: {
        connections: [
          {
            state: "ACTIVE",
            refreshFailureCount: 1,
            refreshFailingTime: new Date(FAILING.since).toISOString().replace(".000", ""),
            lastRefreshFailureTime: new Date(FAILING.lastAt).toISOString().replace(".000", ""),
            lastRefreshFailure: "server_error",
            nextRefreshTime: expect.stringMatching(/^\d{4}-/),
          },
        ],
      },
    });
  });

  it("lists nothing for a user that nobody knows", async () => {
    const own = await newApplication();
    expect(await bed().caller("listConnections", named(own, "nobody"))).toEqual({ answer: { connections: [] } });
  });

  it("deletes one connection and revokes its token", async () => {
    const { harness, caller } = bed();
    const own = await newApplication();
    await harness.putClient(own);
    const { access_token: accessToken, refresh_token: refreshToken } = harness.sandbox.issueToken();
    await harness.connect(own, "ada", { accessToken, refreshToken });
    await harness.connect(own, "bob");
    const deletion = { ...named(own, "ada"), providerName: "sandbox" };
    expect(await caller("deleteConnection", deletion)).toEqual({ answer: { revocation: "REVOKED" } });
    expect(harness.sandbox.requests.at(-1)).toMatchObject({ target: "/oauth/revoke" });
    expect(await stored(own, "ada")).toEqual([]);
    expect(await stored(own, "bob")).toHaveLength(1);
    await refused("deleteConnection", deletion, "INVALID_OAUTHID");
  });

  it.each([
    ["without a client", "sandbox", "FAILED"],
    ["without a revocation endpoint", "old-shop", "NOT_SUPPORTED"],
    ["that is gone from the catalogue", "gone", "NOT_SUPPORTED"],
  ])("deletes a connection of a provider %s", async (_, providerName, revocation) => {
    const own = await newApplication();
    await bed().harness.connect(own, "ada", { providerName: providerName.replace("old-", "") });
    const deletion = { ...named(own, "ada"), providerName };
    expect(await bed().caller("deleteConnection", deletion)).toEqual({ answer: { revocation } });
    expect(await stored(own, "ada")).toEqual([]);
  });

  it.each(["nobody", "__proto__", "constructor", "Sandbox", "s%61ndbox", "a/b", "%", "%E0%A4%A", "é", "a\0b"])(
    "knows no provider %s",
    async (providerName) => {
      const own = await newApplication();
      await refused("deleteConnection", { ...named(own, "ada"), providerName }, "INVALID_PROVIDER");
      const link = { ...named(own, "ada"), privateKey: own.privateKey };
      await refused("createConnectLink", { ...link, providerName }, "INVALID_PROVIDER");
      await refused("createConnectLink", { ...link, providers: ["sandbox", providerName] }, "INVALID_PROVIDER");
    },
  );

  it("makes a link", async () => {
    const own = await newApplication();
    await bed().harness.putClient(own);
    const before = Date.now();
    const fields = { ...named(own, newUser()), privateKey: own.privateKey, redirectUri: BACK, scope: SCOPE };
    const { answer } = (await bed().caller("createConnectLink", fields)) as { answer: Record<string, string> };
    expect(answer["connectUri"]).toMatch(/^http:\/\/127\.0\.0\.1:\d+\/oauth\/connect\?link=[\w-]{43}$/);
    const lifetimeMs = Date.parse(answer["expireTime"] ?? "") - before;
    expect(lifetimeMs).toBeGreaterThanOrEqual(15 * 60_000 - 1);
    expect(lifetimeMs).toBeLessThanOrEqual(15 * 60_000 + Date.now() - before);
  });

  it.each([
    ["the message", (own: TestApplication) => [{ privateKey: own.privateKey }, {}] as const],
    ["Authorization", (own: TestApplication) => [{}, { authorization: `Bearer ${own.privateKey}` }] as const],
    [
      "x-partner-key",
      (own: TestApplication) => [{}, { "x-partner-key": `${own.publicKey}.${own.privateKey}` }] as const,
    ],
  ])("takes the private key from %s", async (_, place) => {
    const own = await newApplication({ callerAuth: "PRIVATE_KEY" });
    const [fields, headers] = place(own);
    await bed().harness.connect(own, "ada");
    for (const method of ["listConnections", "createConnectLink"] as const) {
      expect(await bed().caller(method, { ...named(own, "ada"), ...fields }, headers)).toHaveProperty("answer");
      await refused(method, named(own, "ada"), "CALLER_NOT_ALLOWED");
    }
    const deletion = { ...named(own, "ada"), providerName: "sandbox" };
    await refused("deleteConnection", deletion, "CALLER_NOT_ALLOWED");
    expect(await bed().caller("deleteConnection", { ...deletion, ...fields }, headers)).toHaveProperty("answer");
  });

  it("makes no link without the private key, whatever else is proven", async () => {
    const own = await newApplication();
    const other = await newApplication();
    const userSignature = signText(hashPrivateKey(own.privateKey), "ada").toString("hex");
    expect(await bed().caller("listConnections", { ...named(own, "ada"), userSignature })).toHaveProperty("answer");
    await refused("createConnectLink", named(own, "ada"), "CALLER_NOT_ALLOWED");
    for (const privateKey of ["x", other.privateKey, userSignature]) {
      await refused("createConnectLink", { ...named(own, "ada"), privateKey }, "CALLER_NOT_ALLOWED");
    }
  });

  it("refuses a wrong proof beside a right one", async () => {
    const own = await newApplication();
    const other = await newApplication();
    const right = { ...named(own, "ada"), privateKey: own.privateKey };
    for (const headers of [
      { authorization: "Bearer wrong" },
      { authorization: `Bearer ${other.privateKey}` },
      { "x-partner-key": `${own.publicKey}.${other.privateKey}` },
      { "x-partner-key": `${other.publicKey}.${other.privateKey}` },
    ]) {
      for (const method of ["listConnections", "createConnectLink"] as const) {
        await refused(method, right, "CALLER_NOT_ALLOWED", headers);
      }
      await refused("deleteConnection", { ...right, providerName: "sandbox" }, "CALLER_NOT_ALLOWED", headers);
    }
  });

  it("takes a user's signature where the application asks for one", async () => {
    const own = await newApplication({ callerAuth: "SIGNED_USER" });
    const sign = (userId: string) => signText(hashPrivateKey(own.privateKey), userId).toString("hex");
    await bed().harness.connect(own, "ada");
    const deletion = { ...named(own, "ada"), providerName: "sandbox" };
    for (const userSignature of ["", sign("bob"), sign("ada").toUpperCase()]) {
      await refused("listConnections", { ...named(own, "ada"), userSignature }, "CALLER_NOT_ALLOWED");
      await refused("deleteConnection", { ...deletion, userSignature }, "CALLER_NOT_ALLOWED");
    }
    const signed = { userSignature: sign("ada") };
    expect(await bed().caller("listConnections", { ...named(own, "ada"), ...signed })).toHaveProperty("answer");
    expect(await bed().caller("deleteConnection", { ...deletion, ...signed })).toHaveProperty("answer");
  });

  it.each([
    ["an origin that is not listed", { origin: "https://evil.example" }, {}],
    ["an address that is not listed", {}, { allowedAddresses: ["192.0.2.1"] }],
  ])("refuses %s", async (_, headers, options) => {
    const own = await newApplication({ allowedOrigins: ["https://app.example.com"], ...options });
    const fields = { ...named(own, "ada"), privateKey: own.privateKey };
    for (const method of ["listConnections", "createConnectLink"] as const) {
      await refused(method, fields, "CALLER_NOT_ALLOWED", headers);
    }
    await refused("deleteConnection", { ...fields, providerName: "sandbox" }, "CALLER_NOT_ALLOWED", headers);
  });

  it.each([
    ["no user", { userId: "" }, "CALL_FORMAT_ERROR"],
    ["no application", { publicKey: "" }, "CALL_FORMAT_ERROR"],
    ["a user of 257 characters", { userId: "x".repeat(257) }, "CALL_FORMAT_ERROR"],
    ["an unknown application", { publicKey: "unknown" }, "INVALID_PUBLIC_KEY"],
  ] as const)("refuses %s", async (_, change, errorType) => {
    const own = await newApplication();
    const fields = { ...named(own, "ada"), ...change };
    await refused("listConnections", fields, errorType);
    await refused("deleteConnection", { ...fields, providerName: "sandbox" }, errorType);
    await refused("createConnectLink", { ...fields, privateKey: own.privateKey }, errorType);
  });

  it("refuses a disabled application", async () => {
    const own = await newApplication({ state: "DISABLED" });
    await refused("listConnections", named(own, "ada"), "INVALID_PUBLIC_KEY");
  });

  it.each([
    ["an address that is not listed", { redirectUri: `${BACK}/` }, "CALLER_NOT_ALLOWED"],
    [
      "a parameter that leaves the host",
      { providerName: "shop", originParameters: { shop: "evil.example/" } },
      "CALL_FORMAT_ERROR",
    ],
    ["an unknown parameter", { providerName: "shop", originParameters: { shop: "a", x: "b" } }, "CALL_FORMAT_ERROR"],
    ["a parameter of no provider", { originParameters: { shop: "acme" } }, "CALL_FORMAT_ERROR"],
    ["a scope of 4097 characters", { scope: "x".repeat(4097) }, "CALL_FORMAT_ERROR"],
    [
      "a provider that no browser can connect",
      { providerName: "shop", originParameters: { shop: "a" } },
      "INVALID_PROVIDER",
    ],
    ["a provider without a client", { providerName: "sandbox" }, "PROVIDER_MISCONFIGURED"],
    ["a list with one that no browser can connect", { providers: ["sandbox", "old-shop"] }, "INVALID_PROVIDER"],
    ["a list with one without a client", { providers: ["sandbox", "github"] }, "PROVIDER_MISCONFIGURED"],
    ["a page that would be empty", {}, "PROVIDER_MISCONFIGURED"],
    ["201 providers", { providers: Array(201).fill("sandbox") }, "CALL_FORMAT_ERROR"],
  ] as const)("makes no link with %s", async (_, fields, errorType) => {
    const own = await newApplication();
    if ("providers" in fields) await bed().harness.putClient(own);
    await refused(
      "createConnectLink",
      { ...named(own, "ada"), privateKey: own.privateKey, ...fields } as never,
      errorType,
    );
  });
}
