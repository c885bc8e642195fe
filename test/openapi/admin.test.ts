import { readFileSync } from "node:fs";
import { Validator } from "@seriousme/openapi-schema-validator";
import { Ajv2020 } from "ajv/dist/2020.js";
import addFormats from "ajv-formats";
import { request } from "undici";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { ADMIN_SERVICES } from "../../src/admin/rpc-handler.js";
import { ADMIN_TOKENS, type Harness, startHarness, type TestApplication } from "../support/harness.js";
import { createAdminDocument } from "./admin-document.js";
import { readSchema } from "./registry.js";

interface Content {
  readonly content: Record<string, { readonly schema: { readonly $ref?: string } }>;
}
interface Operation {
  readonly requestBody: Content;
  readonly responses: Record<string, Content>;
}

const text = readFileSync("docs/openapi-admin.json", "utf8");
const document = JSON.parse(text) as { readonly paths: Record<string, { readonly post: Operation }> };
const ajv = new Ajv2020({ strict: false });

let harness: Harness;
let application: TestApplication;
beforeAll(async () => {
  (addFormats as unknown as (ajv: Ajv2020) => void)(ajv);
  ajv.addFormat("int64", /^-?\d{1,19}$/);
  ajv.addSchema(document, "openapi");
  harness = await startHarness({ providers: [{ name: "keyed", apiOrigins: ["https://keyed.example"] }] });
  application = await harness.createApplication();
  await harness.connect(application, "ada", { expiresAt: Date.now() + 3_600_000 });
  await harness.putClient(application);
});
afterAll(() => harness.close());

function expectValid({ content }: Content, value: unknown): void {
  const { $ref } = content["application/json"]?.schema ?? {};
  const validate = ajv.compile($ref === undefined ? {} : { $ref: `openapi${$ref}` });
  expect([validate(value), validate.errors]).toEqual([true, null]);
}

/** Sends a message that the document allows, and judges the answer by it. */
async function call(name: string, message: object, token: string = ADMIN_TOKENS.operator) {
  const path = `/relay.admin.v1.${name}`;
  const { requestBody, responses } = (document.paths[path] as { readonly post: Operation }).post;
  expectValid(requestBody, message);
  const headers = { "content-type": "application/json", authorization: `Bearer ${token}` };
  const answer = await request(harness.adminUrl + path, { method: "POST", headers, body: JSON.stringify(message) });
  expect(answer.headers["x-request-id"]).toBeDefined();
  const json = await answer.body.json();
  expectValid((responses[answer.statusCode] ?? responses["default"]) as Content, json);
  return { status: answer.statusCode, json };
}

describe("docs/openapi-admin.json", () => {
  it("is an OpenAPI 3.1 document", async () => {
    expect(await new Validator().validate(JSON.parse(text))).toEqual({ valid: true });
  });

  it("is what the schema says now; npm run openapi writes it", () => {
    expect(text).toBe(`${JSON.stringify(createAdminDocument(readSchema()), undefined, 2)}\n`);
  });

  it("has every method of the port, metrics, health, and nothing else", () => {
    const methods = ADMIN_SERVICES.flatMap((service) =>
      service.methods.map(({ name }) => `/${service.typeName}/${name}`),
    );
    expect(Object.keys(document.paths).sort()).toEqual([...methods, "/metrics", "/healthz", "/readyz"].sort());
  });

  it("describes what the methods take and answer", async () => {
    const { publicKey } = application;
    const description = { url: `${harness.sandbox.origin}/me`, method: "GET" };
    const me = { providerName: "sandbox", userId: "ada", publicKey, call: description };
    const created = await call("ApplicationService/CreateApplication", {
      application: {
        displayName: "new",
        allowedOrigins: ["https://app.example"],
        callerAuth: "CALLER_AUTH_PRIVATE_KEY",
      },
    });
    expect(created.status).toBe(200);
    for (const [name, message] of [
      ["ApplicationService/ListApplications", { pageSize: 1 }],
      ["ConnectionService/ListConnections", { publicKey }],
      ["OAuthClientService/ListOAuthClients", { publicKey }],
      ["ProviderService/ListProviders", { pageSize: 500 }],
      ["SessionService/GetSession", {}],
      ["AuditService/ListAuditRecords", {}],
      ["CallService/ExplainCall", { call: me }],
      ["CallService/PerformCall", { call: me }],
      ["CallRecordService/ListCallRecords", { publicKey }],
      ["CallRecordService/StartCallCapture", { publicKey, duration: "60s" }],
      ["CallRecordService/StopCallCapture", { publicKey }],
      ["WebhookService/PutWebhook", { webhook: { publicKey, uri: "https://app.example.com/hooks" } }],
      ["WebhookService/GetWebhook", { publicKey }],
      ["OAuthClientService/DeleteOAuthClient", { publicKey, providerName: "sandbox" }],
      ["ConnectionService/DeleteConnection", { publicKey, userId: "ada", providerName: "sandbox" }],
      ["ApplicationService/DeleteApplication", { publicKey }],
    ] as const) {
      expect([name, (await call(name, message)).status]).toEqual([name, 200]);
    }
  });

  it("describes how they fail", async () => {
    const list = "ApplicationService/ListApplications";
    expect((await call(list, { pageToken: "none" })).status).toBe(400);
    expect((await call(list, {}, "wrong")).status).toBe(401);
    expect(
      (await call("ApplicationService/CreateApplication", { application: {} }, ADMIN_TOKENS.readOnly)).status,
    ).toBe(403);
    expect((await call("ApplicationService/GetApplication", { publicKey: "nobody's" })).status).toBe(404);
  });
});
