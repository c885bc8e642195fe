import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { CallerAuth } from "../../gen/relay/admin/v1/application_pb.js";
import { AuditRecord_Outcome as Outcome } from "../../gen/relay/admin/v1/audit_pb.js";
import { createCallers, type Row } from "../support/callers.js";
import { ADMIN_TOKENS, type Harness, startHarness, type TestApplication } from "../support/harness.js";
import { type AdminClients, createAdminClients } from "./admin-bed.js";
import { failure } from "./failure.js";

let harness: Harness;
let clients: AdminClients;
let application: TestApplication;

beforeAll(async () => {
  harness = await startHarness();
  clients = createAdminClients(harness);
  application = await harness.createApplication({ callerAuth: "PRIVATE_KEY" });
  await harness.connect(application, "ada");
});
afterAll(() => harness.close());

const claimsOf = (token: string) => JSON.parse(Buffer.from(token.split(".")[1] ?? "", "base64url").toString());

function call(to: string, proof: { callToken?: string; privateKey?: string }, method = "GET"): Promise<Row> {
  const [, caller] = createCallers(harness.url)[0] ?? expect.unreachable();
  return caller({
    providerName: "sandbox",
    userId: "ada",
    publicKey: application.publicKey,
    ...(proof.privateKey && { privateKey: proof.privateKey }),
    ...(proof.callToken && { outerHeaders: { authorization: `Bearer ${proof.callToken}` } }),
    call: { url: harness.sandbox.origin + to, method },
  });
}

describe("CreateCallToken", () => {
  it("makes a token that calls within its rules, and writes down who made it and not the token", async () => {
    const { publicKey } = application;
    const { callToken, expireTime } = await clients.applications.createCallToken({
      publicKey,
      userId: "ada",
      providerNames: ["sandbox"],
      rules: [{ methods: ["GET"], paths: ["/me", "/echo/**"] }],
      lifetimeSeconds: 60,
    });
    const { iat, exp, ...claims } = claimsOf(callToken);
    expect(exp - iat).toBe(60);
    expect(Number(expireTime?.seconds)).toBe(exp);
    expect(claims).toEqual({
      iss: publicKey,
      sub: "ada",
      aud: "provider-call-relay",
      providers: ["sandbox"],
      rules: [{ methods: ["GET"], paths: ["/me", "/echo/**"] }],
    });
    expect(await call("/me", { callToken })).toMatchObject({ pincStatus: "success" });
    expect(await call("/items", { callToken })).toMatchObject({ errorType: "CALL_NOT_PERMITTED" });
    const { auditRecords } = await clients.audit.listAuditRecords({ publicKey });
    expect(auditRecords[0]).toMatchObject({
      actor: "alice",
      method: "relay.admin.v1.ApplicationService.CreateCallToken",
      resource: `applications/${publicKey}/users/ada`,
      outcome: Outcome.DONE,
    });
    for (const part of callToken.split(".").slice(1)) {
      expect(
        JSON.stringify(auditRecords, (_, value) => (typeof value === "bigint" ? `${value}` : value)),
      ).not.toContain(part);
      expect(harness.logLines.join("")).not.toContain(part);
    }
  });

  it("makes one for a quarter of an hour and every request unless told", async () => {
    const { callToken } = await clients.applications.createCallToken({ publicKey: application.publicKey, userId: "É" });
    const { iat, exp, sub, providers, rules } = claimsOf(callToken);
    expect({ lifetime: exp - iat, sub, providers, rules }).toEqual({ lifetime: 900, sub: "É" });
  });

  it("is for operators alone", async () => {
    const readOnly = createAdminClients(harness, "connect", ADMIN_TOKENS.readOnly);
    const asked = readOnly.applications.createCallToken({ publicKey: application.publicKey, userId: "ada" });
    expect(await failure(asked)).toMatchObject({ code: "PermissionDenied" });
  });

  it("refuses a disabled application, and writes nothing down", async () => {
    const { publicKey } = await harness.createApplication({ state: "DISABLED" });
    const refused = clients.applications.createCallToken({ publicKey, userId: "ada" });
    expect(await failure(refused)).toMatchObject({ code: "FailedPrecondition" });
    expect((await clients.audit.listAuditRecords({ publicKey })).auditRecords).toEqual([]);
  });

  it.each([
    [{ userId: "" }, "InvalidArgument", ""],
    [{ publicKey: "nobody-here" }, "NotFound", "application"],
    [{ providerNames: ["nobody"] }, "NotFound", "provider"],
    [{ lifetimeSeconds: -1 }, "InvalidArgument", "lifetime_seconds must be from 1 to 86400"],
    [{ lifetimeSeconds: 86_401 }, "InvalidArgument", "lifetime_seconds must be from 1 to 86400"],
    [{ rules: [{ methods: ["get"] }] }, "InvalidArgument", "rules has a rule 1 whose methods"],
    [{ rules: [{}, { paths: ["/a//b"] }] }, "InvalidArgument", "rules has a rule 2 whose paths"],
    [
      { rules: Array.from({ length: 50 }, (_, at) => ({ paths: [`/${"a".repeat(90)}${at}`] })) },
      "InvalidArgument",
      "rules must be shorter",
    ],
  ])("refuses bad input %#", async (asked, code, text) => {
    const refused = clients.applications.createCallToken({ publicKey: application.publicKey, userId: "ada", ...asked });
    expect(await failure(refused)).toMatchObject({ code, message: expect.stringContaining(text) });
  });
});

describe("rules of an application", () => {
  const rules = [{ methods: ["GET"], hosts: [], paths: ["/me", "/echo/**"] }];
  const update = (patch: object, paths: readonly string[]) =>
    clients.applications.updateApplication({
      application: { publicKey: application.publicKey, ...patch },
      updateMask: { paths: [...paths] },
    });

  it("bound every call, whatever it proves itself with, and can be taken away", async () => {
    const { privateKey, publicKey } = application;
    const updated = await update({ callRules: [{ providerName: "sandbox", rules }] }, ["call_rules"]);
    expect(updated.callRules).toMatchObject([{ providerName: "sandbox", rules }]);
    expect(await clients.applications.getApplication({ publicKey })).toMatchObject({ etag: updated.etag });
    const wide = await clients.applications.createCallToken({ publicKey, userId: "ada", rules: [{ paths: ["/**"] }] });
    const refused = {
      errorType: "CALL_NOT_PERMITTED",
      statusCode: 403,
      inernalError: expect.stringContaining("application at this provider"),
    };
    for (const proof of [{ privateKey }, { callToken: wide.callToken }]) {
      await expect.poll(async () => (await call("/items", proof))["errorType"]).toBe("CALL_NOT_PERMITTED");
      expect(await call("/items", proof)).toMatchObject(refused);
      expect(await call("/me", proof, "POST")).toMatchObject(refused);
      expect(await call("/echo/..%2Fitems", proof)).toMatchObject(refused);
      expect(await call("/me", proof)).toMatchObject({ pincStatus: "success" });
    }
    const narrow = await clients.applications.createCallToken({
      publicKey,
      userId: "ada",
      rules: [{ paths: ["/items", "/me"] }],
    });
    expect(await call("/items", narrow)).toMatchObject(refused);
    expect(await call("/me", narrow)).toMatchObject({ pincStatus: "success" });
    expect(await call("/echo/a", narrow)).toMatchObject({ inernalError: expect.stringContaining("this call token") });
    await update({ callRules: [{ providerName: "github", rules }] }, ["call_rules"]);
    await expect.poll(async () => (await call("/items", { privateKey }))["pincStatus"]).toBe("success");
    expect((await update({}, ["call_rules"])).callRules).toEqual([]);
  });

  it("are told by an explanation, with those of the token", async () => {
    const { publicKey } = application;
    await update({ callRules: [{ providerName: "sandbox", rules: [{ methods: ["POST"] }, ...rules] }] }, [
      "call_rules",
    ]);
    const { callToken } = await clients.applications.createCallToken({
      publicKey,
      userId: "ada",
      rules: [{ paths: ["/me"] }],
    });
    const explained = (to: string) =>
      clients.calls.explainCall({
        call: {
          providerName: "sandbox",
          privateKey: callToken,
          call: { url: harness.sandbox.origin + to, method: "GET" },
        },
      });
    expect(await explained("/me")).toMatchObject({
      caller: { allowed: true, rule: "call-token" },
      egress: { allowed: true, rule: harness.sandbox.origin },
      applicationRules: { allowed: true, rule: "rule 2" },
      callTokenRules: { allowed: true, rule: "rule 1" },
    });
    expect(await explained("/echo/a")).toMatchObject({
      egress: { allowed: true, rule: harness.sandbox.origin },
      applicationRules: { allowed: true, rule: "rule 2" },
      callTokenRules: { allowed: false, rule: "no rule" },
      refusal: { errorType: "CALL_NOT_PERMITTED", advice: expect.stringContaining("relay token create") },
    });
    const { callTokenRules, ...refused } = await explained("/items");
    expect(callTokenRules).toBeUndefined();
    expect(refused).toMatchObject({
      applicationRules: { allowed: false, rule: "no rule" },
      refusal: { errorType: "CALL_NOT_PERMITTED", advice: expect.stringContaining("--call-rules") },
    });
    await update({}, ["call_rules"]);
  });

  it.each([
    [[{ providerName: "nobody", rules }], "not a known provider"],
    [
      [
        { providerName: "sandbox", rules },
        { providerName: "sandbox", rules },
      ],
      "twice",
    ],
    [[{ providerName: "sandbox", rules: [] }], "1 to 100 rules"],
    [[{ providerName: "sandbox", rules: [{ paths: ["a"] }] }], "rule 1 whose paths"],
    [
      [{ providerName: "sandbox", rules: Array.from({ length: 100 }, () => ({ paths: [`/${"a".repeat(700)}`] })) }],
      "65536 characters",
    ],
  ])("are refused as a whole where one is wrong: %#", async (callRules, text) => {
    const refused = update({ callRules }, ["call_rules"]);
    expect(await failure(refused)).toMatchObject({
      code: "InvalidArgument",
      message: expect.stringContaining(text),
    });
  });

  it("set how long a call token may live", async () => {
    const { application: made, privateKey } = await clients.applications.createApplication({
      application: { displayName: "A", callerAuth: CallerAuth.PRIVATE_KEY, maxCallTokenSeconds: 60 },
    });
    expect(made).toMatchObject({ maxCallTokenSeconds: 60 });
    expect(privateKey).not.toBe("");
    const asked = { publicKey: made?.publicKey ?? "", userId: "ada" };
    expect(await failure(clients.applications.createCallToken(asked))).toMatchObject({
      message: expect.stringContaining("from 1 to 60"),
    });
    expect(await clients.applications.createCallToken({ ...asked, lifetimeSeconds: 60 })).toMatchObject({
      callToken: expect.any(String),
    });
    expect(await failure(update({ maxCallTokenSeconds: 86_401 }, ["max_call_token_seconds"]))).toMatchObject({
      code: "InvalidArgument",
    });
  });
});
