import { join } from "node:path";
import { type ClientReadableStream, status as Code, Metadata } from "@grpc/grpc-js";
import Database from "better-sqlite3";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { type Harness, startHarness, type TestApplication } from "../../support/harness.js";
import { type DynamicClient, healthClient, invoke, invokeRaw, relayClient } from "./grpc-client.js";
import { nestedCall } from "./nested-call.js";

const CALL = "/relay.v1.RelayService/Call";
/** For a channel that compresses what it sends. */
const GZIP = { "grpc.default_compression_algorithm": 2 };

let harness: Harness;
let application: TestApplication;
let relay: DynamicClient;
let health: DynamicClient;

beforeAll(async () => {
  harness = await startHarness({ env: { RELAY_MAX_REQUEST_BYTES: "100000" } });
  application = await harness.createApplication();
  await harness.connect(application, "ada");
  relay = relayClient(harness.url);
  health = healthClient(harness.url);
});

afterAll(async () => {
  relay.close();
  health.close();
  await harness.close();
});

function message(path: string, call: object = {}, outer: object = {}): object {
  const url = harness.sandbox.origin + path;
  const { publicKey } = application;
  return {
    provider_name: "sandbox",
    user_id: "ada",
    public_key: publicKey,
    call: { url, method: "GET", ...call },
    ...outer,
  };
}

async function rowOf(answer: Promise<unknown>): Promise<Record<string, unknown>> {
  const { rows } = (await answer) as { rows: Record<string, unknown>[] };
  expect(rows).toHaveLength(1);
  return rows[0] as Record<string, unknown>;
}

describe("a @grpc/grpc-js client of the .proto files", () => {
  it("gets an error row with status OK", async () => {
    const row = await rowOf(invoke(relay, "Call", message("/status/404")));
    expect(row).toMatchObject({ pinc_status: "error", status_code: 404, error_type: "API_ERROR" });
    expect(row["data"]).toMatchObject({ structValue: { fields: { status: { numberValue: 404 } } } });
  });

  it("gets a refusal as a row", async () => {
    const row = await rowOf(invoke(relay, "Call", message("/me", {}, { user_id: "nobody" })));
    expect(row).toMatchObject({ pinc_status: "error", status_code: 401, error_type: "INVALID_OAUTHID" });
  });

  it("gets a success row", async () => {
    const row = await rowOf(invoke(relay, "Call", message("/me")));
    expect(row).toMatchObject({
      pinc_status: "success",
      status_code: 200,
      content_type: "application/json",
      data: { structValue: { fields: { login: { stringValue: "ada" } } } },
      call_id: expect.stringMatching(/^[0-9a-f-]{36}$/),
    });
  });

  it("gets an empty answer as an empty object", async () => {
    const row = await rowOf(invoke(relay, "Call", message("/no-content")));
    expect(row).toMatchObject({ pinc_status: "success", status_code: 204, data: { structValue: {} } });
  });

  it("sends and gets exact bytes", async () => {
    const body = Buffer.from(Array.from({ length: 256 }, (_, byte) => byte));
    const call = { method: "PUT", body, headers: { "content-type": "application/x-test" } };
    const row = await rowOf(invoke(relay, "Call", message("/raw-echo", call, { response_mode: "RESPONSE_MODE_BODY" })));
    expect(row).toMatchObject({ content_type: "application/x-test", body });
    expect(row).not.toHaveProperty("data");
  });

  it("tells that a number was rounded, and has it exactly in the bytes", async () => {
    const rounded = await rowOf(invoke(relay, "Call", message("/bigint")));
    expect(rounded).toMatchObject({
      data: { structValue: { fields: { id: { numberValue: 9007199254740992 } } } },
      data_rounded: true,
    });
    const exact = await rowOf(invoke(relay, "Call", message("/bigint", {}, { response_mode: "RESPONSE_MODE_BODY" })));
    expect(String(exact["body"])).toBe('{"id":9007199254740993,"v":1.0,"b":1,"a":2}');
  });

  it.each([
    [Number.MAX_SAFE_INTEGER, "9007199254740991"],
    [2 ** 63, "9223372036854776000"],
    [Number.MAX_VALUE, "1.7976931348623157e+308"],
    [Number.MIN_VALUE, "5e-324"],
    [-0.1, "-0.1"],
  ])("sends the number %d as %s", async (numberValue, text) => {
    const call = { method: "POST", payload: { fields: { n: { numberValue } } } };
    await rowOf(invoke(relay, "Call", message("/echo", call)));
    expect(harness.sandbox.requests.at(-1)?.body.toString()).toBe(`{"n":${text}}`);
  });

  it.each([Number.NaN, Number.POSITIVE_INFINITY, Number.NEGATIVE_INFINITY])(
    "gets a row that names the field for the number %d, which JSON does not have",
    async (numberValue) => {
      const payload = { fields: { list: { listValue: { values: [{ numberValue }] } } } };
      const row = await rowOf(invoke(relay, "Call", message("/echo", { method: "POST", payload })));
      expect(row).toMatchObject({ error_type: "CALL_FORMAT_ERROR", inernal_error: expect.stringContaining("payload") });
    },
  );

  it("ends at its own deadline", async () => {
    const deadline = Date.now() + 200;
    const call = invoke(relay, "Call", message("/slow?ms=60000"), { deadline });
    await expect(call).rejects.toMatchObject({ code: Code.DEADLINE_EXCEEDED });
  });

  it("is told RESOURCE_EXHAUSTED for a message over the limit, and can go on", async () => {
    const body = Buffer.alloc(100_001);
    const call = invoke(relay, "Call", message("/echo", { method: "POST", body }));
    await expect(call).rejects.toMatchObject({ code: Code.RESOURCE_EXHAUSTED });
    expect(await rowOf(invoke(relay, "Call", message("/me")))).toMatchObject({ pinc_status: "success" });
  });

  it("is told RESOURCE_EXHAUSTED for a compressed message that is over the limit", async () => {
    const client = relayClient(harness.url, GZIP);
    const call = invoke(client, "Call", message("/echo", { method: "POST", body: Buffer.alloc(50_000_000) }));
    await expect(call).rejects.toMatchObject({ code: Code.RESOURCE_EXHAUSTED });
    expect(await rowOf(invoke(client, "Call", message("/me")))).toMatchObject({ pinc_status: "success" });
    client.close();
  });

  it("may compress a message of the largest size", async () => {
    const client = relayClient(harness.url, GZIP);
    const call = { method: "PUT", body: Buffer.alloc(99_000, "a") };
    expect(await rowOf(invoke(client, "Call", message("/raw-echo", call)))).toMatchObject({ pinc_status: "success" });
    client.close();
  });

  it.each([
    ["a tag that no field has", Buffer.from([0xff])],
    ["a field that is cut off", Buffer.from([0x0a, 0x05, 0x61])],
    ["text that is not UTF-8", Buffer.from([0x0a, 0x01, 0xff])],
    ["a Struct of 1,000 levels", nestedCall(1_000)],
  ])("is told of a message that cannot be decoded: %s", async (_what, bytes) => {
    await expect(invokeRaw(relay, CALL, bytes)).rejects.toMatchObject({ code: Code.INTERNAL });
    expect(await rowOf(invoke(relay, "Call", message("/me")))).toMatchObject({ pinc_status: "success" });
  });

  it("is told of an unknown method and of an unknown service", async () => {
    for (const path of ["/relay.v1.RelayService/Nothing", "/nobody.v1.Service/Call"]) {
      await expect(invokeRaw(relay, path, Buffer.alloc(0))).rejects.toMatchObject({ code: Code.UNIMPLEMENTED });
    }
  });
});

describe("proof in the metadata", () => {
  let strict: TestApplication;

  beforeAll(async () => {
    strict = await harness.createApplication({ callerAuth: "PRIVATE_KEY" });
    await harness.connect(strict, "ada");
  });

  function call(metadata: Record<string, string>, outer: object = {}) {
    const fields = { public_key: strict.publicKey, ...outer };
    return rowOf(invoke(relay, "Call", message("/me", {}, fields), { metadata }));
  }

  it("is missing", async () => {
    expect(await call({})).toMatchObject({ error_type: "CALLER_NOT_ALLOWED" });
  });

  it("is refused when it is another application's", async () => {
    const { publicKey, privateKey } = application;
    expect(await call({ authorization: `Bearer ${privateKey}` })).toMatchObject({ error_type: "CALLER_NOT_ALLOWED" });
    expect(await call({ "x-partner-key": `${publicKey}.${privateKey}` })).toMatchObject({
      error_type: "CALLER_NOT_ALLOWED",
    });
  });

  it("is authorization: Bearer", async () => {
    expect(await call({ authorization: `Bearer ${strict.privateKey}` })).toMatchObject({ pinc_status: "success" });
  });

  it("is x-partner-key, which names the application too", async () => {
    const metadata = { "x-partner-key": `${strict.publicKey}.${strict.privateKey}` };
    expect(await call(metadata, { public_key: "" })).toMatchObject({ pinc_status: "success" });
  });
});

describe("grpc.health.v1.Health", () => {
  it("does not know every service", async () => {
    const check = invoke(health, "Check", { service: "nobody.v1.Service" });
    await expect(check).rejects.toMatchObject({ code: Code.NOT_FOUND });
  });

  it.each(["", "relay.v1.RelayService", "grpc.health.v1.Health", "grpc.reflection.v1.ServerReflection"])(
    "says that '%s' serves",
    async (service) => {
      expect(await invoke(health, "Check", { service })).toEqual({ status: "SERVING" });
    },
  );

  it("lists everything", async () => {
    const serving = { status: "SERVING" };
    expect(await invoke(health, "List", {})).toEqual({
      statuses: {
        "": serving,
        "relay.v1.RelayService": serving,
        "grpc.health.v1.Health": serving,
        "grpc.reflection.v1.ServerReflection": serving,
      },
    });
  });

  it("says that nothing serves while the store cannot be read", async () => {
    const db = new Database(join(harness.folder, "relay.db"));
    db.exec("ALTER TABLE applications RENAME TO away");
    expect(await invoke(health, "Check", { service: "" })).toEqual({ status: "NOT_SERVING" });
    db.exec("ALTER TABLE away RENAME TO applications");
    db.close();
    expect(await invoke(health, "Check", { service: "" })).toEqual({ status: "SERVING" });
  });

  it.each([
    ["", ["SERVING", "NOT_SERVING"]],
    ["relay.v1.RelayService", ["SERVING", "NOT_SERVING"]],
    ["nobody.v1.Service", ["SERVICE_UNKNOWN"]],
  ])("watches '%s' until the service stops", async (service, expected) => {
    const stopping = await startHarness();
    const client = healthClient(stopping.url);
    const watch = client["Watch"]?.({ service }, new Metadata(), {}, () => {});
    const statuses: string[] = [];
    let closed: Promise<void> | undefined;
    for await (const { status } of watch as unknown as ClientReadableStream<{ status: string }>) {
      statuses.push(status);
      closed ??= stopping.close();
    }
    expect(statuses).toEqual(expected);
    client.close();
    await closed;
  });
});
