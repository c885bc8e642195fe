import { Code, ConnectError, createClient, type Transport } from "@connectrpc/connect";
import { createConnectTransport, createGrpcTransport, createGrpcWebTransport } from "@connectrpc/connect-node";
import { request } from "undici";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { ServerReflection } from "../../gen/grpc/reflection/v1/reflection_pb.js";
import { ApplicationService } from "../../gen/relay/admin/v1/application_pb.js";
import { ADMIN_TOKENS, type Harness, startHarness } from "../support/harness.js";
import { bearer } from "./bearer.js";

const LIST = "/relay.admin.v1.ApplicationService/ListApplications";

let harness: Harness;
beforeAll(async () => {
  harness = await startHarness();
  await harness.createApplication({ name: "one" });
});
afterAll(() => harness.close());

const transports: ReadonlyArray<readonly [string, (token: string | undefined) => Transport]> = [
  ["Connect", (token) => createConnectTransport({ baseUrl: harness.adminUrl, httpVersion: "1.1", ...bearer(token) })],
  [
    "Connect over HTTP/2",
    (token) => createConnectTransport({ baseUrl: harness.adminUrl, httpVersion: "2", ...bearer(token) }),
  ],
  ["gRPC", (token) => createGrpcTransport({ baseUrl: harness.adminUrl, ...bearer(token) })],
  ["gRPC-Web", (token) => createGrpcWebTransport({ baseUrl: harness.adminUrl, httpVersion: "1.1", ...bearer(token) })],
];

describe.each(transports)("the administration port over %s", (_protocol, transportFor) => {
  it.each([
    ["no token", undefined],
    ["a wrong token", `${ADMIN_TOKENS.operator}x`],
  ])("answers UNAUTHENTICATED to %s", async (_what, token) => {
    const call = createClient(ApplicationService, transportFor(token)).listApplications({});
    const error = ConnectError.from(await call.catch((reason: unknown) => reason));
    expect([error.code, error.metadata.get("www-authenticate")?.split(" ")[0]]).toEqual([
      Code.Unauthenticated,
      "Bearer",
    ]);
  });

  it.each(Object.values(ADMIN_TOKENS))("lists applications for each role", async (token) => {
    const { applications } = await createClient(ApplicationService, transportFor(token)).listApplications({});
    expect(applications.map(({ displayName }) => displayName)).toEqual(["one"]);
  });
});

describe("wrong admin tokens", () => {
  let own: Harness;
  beforeAll(async () => {
    own = await startHarness();
  });
  afterAll(() => own.close());

  const ask = async (token: string | undefined, path = LIST, contentType = "application/json") => {
    const headers = { "content-type": contentType, ...(token && { authorization: `Bearer ${token}` }) };
    const method = path === LIST ? "POST" : "GET";
    const answer = await request(own.adminUrl + path, { method, headers, ...(method === "POST" && { body: "{}" }) });
    const text = await answer.body.text();
    return { status: answer.statusCode, text, headers: answer.headers };
  };

  it("are looked at sixty times a minute, and what comes then is not heard, whatever it is", async () => {
    for (let tries = 0; tries < 70; tries++) expect((await ask(undefined)).status).toBe(401);
    for (let tries = 0; tries < 60; tries++) {
      expect((await ask(`${ADMIN_TOKENS.operator}${tries}`, tries % 2 ? LIST : "/metrics")).status).toBe(401);
    }
    for (const token of ["wrong", ADMIN_TOKENS.operator]) {
      const { status, text, headers } = await ask(token);
      expect({ status, ...JSON.parse(text) }).toMatchObject({ status: 429, code: "resource_exhausted" });
      expect(Number(headers["retry-after"])).toBeGreaterThan(0);
      expect((await ask(token, "/metrics")).status).toBe(429);
      const grpc = await ask(token, LIST, "application/grpc-web+proto");
      expect([grpc.status, grpc.headers["grpc-status"]]).toEqual([200, String(Code.ResourceExhausted)]);
    }
    expect((await ask(undefined)).status).toBe(401);
    expect((await ask(undefined, "/healthz")).status).toBe(200);
  });
});

describe("the administration port", () => {
  it("says 401 in plain HTTP, and which paths there are to operators alone", async () => {
    const ask = async (path: string, authorization?: string) => {
      const headers = { "content-type": "application/json", ...(authorization ? { authorization } : {}) };
      const answer = await request(harness.adminUrl + path, { method: "POST", body: "{}", headers });
      await answer.body.dump();
      return [answer.statusCode, answer.headers["www-authenticate"]];
    };
    const unknown = "/relay.admin.v1.ApplicationService/Nothing";
    expect(await ask(LIST)).toEqual([401, 'Bearer realm="relay administration"']);
    expect(await ask(LIST, "Bearer wrong")).toEqual([
      401,
      'Bearer realm="relay administration", error="invalid_token"',
    ]);
    expect(await ask(unknown)).toEqual([401, expect.anything()]);
    expect(await ask(unknown, `Bearer ${ADMIN_TOKENS.operator}`)).toEqual([404, undefined]);
    expect(await ask("/oauth/method/sandbox/call")).toEqual([404, undefined]);
  });

  it("lets no answer be kept: some hold a secret", async () => {
    for (const body of ["{}", "nonsense"]) {
      const headers = { authorization: `Bearer ${ADMIN_TOKENS.operator}`, "content-type": "application/json" };
      const answer = await request(harness.adminUrl + LIST, { method: "POST", body, headers });
      await answer.body.dump();
      expect(answer.headers["cache-control"]).toBe("no-store");
    }
  });

  it.each([
    ['{"pagesize":1}', "ListApplicationsRequest from JSON: it has the field pagesize, which is not in the schema"],
    ['{"page_sizes":1}', "ListApplicationsRequest from JSON: it has the field page_sizes, which is not in the schema"],
    ['{"pubKeyPrefix":1}', "ListApplicationsRequest from JSON: it has the field pubKeyPrefix, which is not in"],
    // May be a secret in the wrong place.
    ...["hunter2", "gHOxYzAbC", "Secret", "a b", "x".repeat(41), ""].map((key) => [
      JSON.stringify({ [key]: 1 }),
      "ListApplicationsRequest from JSON: it has a field that is not in the schema",
    ]),
  ])("names the field of %s that is not in the schema, where it reads as a name", async (body, text = "") => {
    const headers = { authorization: `Bearer ${ADMIN_TOKENS.operator}`, "content-type": "application/json" };
    const answer = await request(harness.adminUrl + LIST, { method: "POST", body, headers });
    expect(answer.statusCode).toBe(400);
    const { code, message } = (await answer.body.json()) as Record<string, string>;
    expect({ code, message }).toEqual({ code: "invalid_argument", message: expect.stringContaining(text) });
  });

  it("lists its own services by reflection, with a token", async () => {
    const services = async (token: string | undefined) => {
      const transport = createGrpcTransport({ baseUrl: harness.adminUrl, ...bearer(token) });
      async function* questions() {
        yield { messageRequest: { case: "listServices", value: "" } } as const;
      }
      for await (const { messageResponse } of createClient(ServerReflection, transport).serverReflectionInfo(
        questions(),
      ))
        if (messageResponse.case === "listServicesResponse")
          return messageResponse.value.service.map(({ name }) => name);
      return [];
    };
    const names = await services(ADMIN_TOKENS.readOnly);
    expect(names).toContain("relay.admin.v1.ApplicationService");
    expect(names).not.toContain("relay.v1.RelayService");
    await expect(services(undefined)).rejects.toMatchObject({ code: Code.Unauthenticated });
  });

  it("is not on the public port", async () => {
    const headers = { "content-type": "application/json", authorization: `Bearer ${ADMIN_TOKENS.operator}` };
    const answer = await request(harness.url + LIST, { method: "POST", body: "{}", headers });
    expect(answer.statusCode).toBe(404);
    await answer.body.dump();
  });

  it("answers liveness and readiness without a token", async () => {
    for (const path of ["/healthz", "/readyz"]) {
      const answer = await request(harness.adminUrl + path);
      expect([path, answer.statusCode]).toEqual([path, 200]);
      await answer.body.dump();
    }
  });
});
