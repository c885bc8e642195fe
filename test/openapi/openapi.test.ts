import { readFileSync } from "node:fs";
import { hasOption } from "@bufbuild/protobuf";
import { Validator } from "@seriousme/openapi-schema-validator";
import { Ajv2020, type ValidateFunction } from "ajv/dist/2020.js";
import addFormats from "ajv-formats";
import { request } from "undici";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { http } from "../../gen/google/api/annotations_pb.js";
import { RelayService } from "../../gen/relay/v1/relay_pb.js";
import { REASONS } from "../../src/model/errors.js";
import { PAGE_ROUTES } from "../../src/pages/handler.js";
import { type Harness, startHarness, type TestApplication } from "../support/harness.js";
import { createDocument } from "./document.js";
import { readSchema } from "./registry.js";

interface Document {
  readonly paths: Record<string, Record<string, { operationId: string; responses: Record<string, unknown> }>>;
  readonly components: { readonly schemas: Record<string, { enum?: string[] }> };
}

const text = readFileSync("docs/openapi.json", "utf8");
const document = JSON.parse(text) as Document;

let harness: Harness;
let application: TestApplication;
const validators = new Map<string, ValidateFunction>();

beforeAll(async () => {
  harness = await startHarness({ env: { RELAY_PUBLIC_URL: "https://relay.example.com" } });
  application = await harness.createApplication();
  await harness.connect(application, "ada", { expiresAt: Date.now() + 3_600_000 });
  await harness.putClient(application);
  const ajv = new Ajv2020({ strict: false });
  (addFormats as unknown as (ajv: Ajv2020) => void)(ajv);
  ajv.addSchema(document, "openapi");
  for (const name of Object.keys(document.components.schemas)) {
    validators.set(name, ajv.compile({ $ref: `openapi#/components/schemas/${name}` }));
  }
});

afterAll(() => harness.close());

/** Fails with what the validator says. */
function expectValid(name: string, value: unknown): void {
  const validate = validators.get(name);
  if (validate === undefined) throw new Error(`no schema ${name}`);
  expect([validate(value), validate.errors]).toEqual([true, null]);
}

const isValid = (name: string, value: unknown) => validators.get(name)?.(value) === true;

async function send(path: string, method: "GET" | "POST" | "DELETE", body?: unknown, headers = {}) {
  const keys = `public_key=${application.publicKey}&user_id=ada`;
  const url = `${harness.url}${path}${path.includes("?") ? "&" : "?"}${keys}`;
  const answer = await request(url, { method, headers, body: body === undefined ? null : JSON.stringify(body) });
  expect(answer.headers["x-request-id"]).toMatch(/^[0-9a-f-]{36}$/);
  return { status: answer.statusCode, headers: answer.headers, text: await answer.body.text() };
}

const call = async (url: string, more: object = {}, query = "") => {
  const body = { url, method: "GET", ...more };
  if (Object.keys(more).length === 0) expectValid("CallDescription", body);
  return JSON.parse((await send(`/oauth/method/sandbox/call${query}`, "POST", body)).text);
};

describe("docs/openapi.json", () => {
  it("is an OpenAPI 3.1 document", async () => {
    expect(await new Validator().validate(structuredClone(document) as unknown as Record<string, unknown>)).toEqual({
      valid: true,
    });
  });

  it("is what the schema says now; npm run openapi writes it", () => {
    expect(text).toBe(`${JSON.stringify(createDocument(readSchema()), undefined, 2)}\n`);
  });

  it("has every route of the service, the pages, health, and nothing else", () => {
    const operations = Object.values(document.paths)
      .flatMap(Object.values)
      .map(({ operationId }) => operationId);
    const annotated = RelayService.methods.filter((method) => hasOption(method, http));
    const pages = PAGE_ROUTES.flatMap(({ path }) => Object.values(document.paths[path] ?? {}));
    const others = [...pages.map(({ operationId }) => operationId), "liveness", "readiness"];
    expect(pages).toHaveLength(6);
    expect(operations.sort()).toEqual([...annotated.map(({ localName }) => localName), ...others].sort());
  });

  it("has every errorType", () => {
    const types = document.components.schemas["ErrorType"]?.enum;
    expect(types).toEqual([...Object.keys(REASONS), "API_ERROR"].sort());
  });
});

describe("the answers of the relay", () => {
  it.each([
    ["JSON", "/me", {}, ""],
    ["text", "/text", {}, ""],
    ["bytes", "/binary", {}, ""],
    ["nothing", "/no-content", {}, ""],
    ["a redirect", "/redirect?to=x", {}, ""],
    ["exact bytes", "/me", {}, "?response_mode=RESPONSE_MODE_BODY"],
    ["a provider's error", "/status/404", {}, ""],
    ["headers that are no strings", "/echo", { headers: { "x-number": 1, "x-yes": true }, payload: null }, ""],
  ])("are an envelope for %s", async (_what, path, more, query) => {
    const envelope = await call(harness.sandbox.origin + path, more, query);
    expectValid("CallResponse", envelope);
    const isError = envelope.rows[0].pincStatus === "error";
    expect(isValid("ErrorResponse", envelope)).toBe(isError);
  });

  it.each([
    ["https://elsewhere.example/", {}, "URL_NOT_ALLOWED"],
    ["", {}, "CALL_FORMAT_ERROR"],
    ["http://127.0.0.1/", { nothing: 1 }, "CALL_FORMAT_ERROR"],
  ])("are an error row for a call of %s", async (url, more, errorType) => {
    const envelope = await call(url, { ...more, payload: {} });
    expectValid("ErrorResponse", envelope);
    expect(envelope.rows[0].errorType).toBe(errorType);
  });

  it("are the provider's own on the stream route, or an error row that says so", async () => {
    const { origin } = harness.sandbox;
    const streamed = await send("/oauth/method/sandbox/stream", "POST", { url: `${origin}/status/404`, method: "GET" });
    expect(streamed.status).toBe(404);
    expect(streamed.headers["x-call-id"]).toBeDefined();
    expect(streamed.headers["x-error-type"]).toBeUndefined();
    const refused = await send("/oauth/method/nothing/stream", "POST", { url: `${origin}/me`, method: "GET" });
    expect(refused.headers["x-error-type"]).toBe("INVALID_PROVIDER");
    expectValid("ErrorResponse", JSON.parse(refused.text));
    expectValid("ErrorType", refused.headers["x-error-type"]);
  });

  it("are messages about connections", async () => {
    const listed = JSON.parse((await send("/oauth/connections", "GET")).text);
    expectValid("ListConnectionsResponse", listed);
    expect(listed.connections).toHaveLength(1);
    const link = { publicKey: application.publicKey, userId: "ada", originParameters: {}, providers: ["sandbox"] };
    expectValid("CreateConnectLinkRequest", link);
    const bearer = { authorization: `Bearer ${application.privateKey}` };
    const made = await send("/oauth/connect-links", "POST", link, bearer);
    expect(made.status).toBe(200);
    expectValid("CreateConnectLinkResponse", JSON.parse(made.text));
    const deleted = await send("/oauth/connections/sandbox", "DELETE");
    expectValid("DeleteConnectionResponse", JSON.parse(deleted.text));
    for (const refused of [
      await send("/oauth/connections/sandbox", "DELETE"),
      await send("/oauth/connect-links", "POST", {}),
    ]) {
      expect(refused.status).toBeGreaterThanOrEqual(400);
      expectValid("ErrorResponse", JSON.parse(refused.text));
    }
  });

  it.each(PAGE_ROUTES.flatMap(({ path, answers }) => [...answers.keys()].map((method) => [method, path])))(
    "are a page where a browser is told what is wrong, for %s %s",
    async (method, path) => {
      const url = harness.url + path.replace("{provider_name}", "sandbox");
      const { statusCode, headers, body } = await request(url, { method: method as "GET" | "POST" });
      expect([statusCode, headers["content-type"]]).toEqual([400, "text/html; charset=utf-8"]);
      await body.dump();
      expect(document.paths[path]?.[method.toLowerCase()]?.responses["default"]).toMatchObject({
        content: { "text/html": {} },
      });
    },
  );

  it("are plain text about health", async () => {
    for (const path of ["/healthz", "/readyz"]) {
      const { status, headers, text } = await send(path, "GET");
      expect([status, headers["content-type"], text]).toEqual([200, "text/plain; charset=utf-8", "ok\n"]);
      expect(JSON.stringify(document.paths[path]?.["get"]?.responses["200"])).toContain('"const":"ok\\n"');
    }
  });

  it("would not pass in another form", () => {
    const row = { pincStatus: "success", statusCode: 200, contentType: "", data: 1, headers: {}, callId: "1" };
    expectValid("CallResponse", { rows: [row] });
    for (const wrong of [
      { ...row, statusCode: 404 },
      { ...row, errorType: "API_ERROR" },
      { ...row, inernalError: "" },
      { ...row, pincStatus: "error" },
    ]) {
      expect(isValid("CallResponse", { rows: [wrong] })).toBe(false);
    }
    expect(isValid("CallResponse", { rows: [row, row] })).toBe(false);
    expect(isValid("CallDescription", { url: "x" })).toBe(false);
  });
});
