import { createClient } from "@connectrpc/connect";
import { createConnectTransport } from "@connectrpc/connect-node";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { RelayService } from "../../../gen/relay/v1/relay_pb.js";
import { type Caller, createCallers } from "../../support/callers.js";
import { type EdgeBed, startEdgeBed } from "./edge-bed.js";
import { nestedCall } from "./nested-call.js";

const PROTOCOLS = ["REST", "Connect JSON", "Connect binary", "gRPC", "gRPC-Web"];

let bed: EdgeBed;

beforeAll(async () => {
  bed = await startEdgeBed();
});

afterAll(() => bed.close());

/** A good call with further members, as the text they are. */
const withMembers = (members: string) =>
  JSON.stringify(bed.call("/echo", { method: "POST" })).replace('"method"', `${members},"method"`);

describe("a deep payload", () => {
  const deep = (levels: number) => `${'{"a":'.repeat(levels)}1${"}".repeat(levels)}`;
  const withPayload = (levels: number) => withMembers(`"payload":${deep(levels)}`);

  it.each([100, 101, 5_000, 150_000])("of %d levels is no message", async (levels) => {
    const answer = await bed.send(withPayload(levels));
    expect(answer.status).toBe(400);
    expect(JSON.parse(answer.text)).toMatchObject({ code: "invalid_argument" });
    await bed.expectGoodCall();
  });

  it.each([65, 97])("of %d levels is a row that names it", async (levels) => {
    const { text } = await bed.send(withPayload(levels));
    expect(JSON.parse(text)).toMatchObject({
      rows: [{ errorType: "CALL_FORMAT_ERROR", inernalError: expect.stringContaining("payload") }],
    });
  });

  it("of 64 levels arrives", async () => {
    expect(JSON.parse((await bed.send(withPayload(64))).text)).toMatchObject({ rows: [{ pincStatus: "success" }] });
    expect(bed.harness.sandbox.requests.at(-1)?.body.toString()).toBe(deep(64));
  });

  it("of 40 levels in protobuf is decoded", async () => {
    const { status, text } = await bed.send(nestedCall(40), { "content-type": "application/proto" });
    expect(status).toBe(200);
    expect(text).toContain("url is missing.");
  });
});

describe("a payload of many keys, at any depth", () => {
  it.each([
    [10_000, "success", ""],
    [10_001, "error", "payload has too many keys or is nested too deeply."],
  ])("of %d is a row", async (keys, pincStatus, inernalError) => {
    const payload = { a: Array.from({ length: keys - 1 }, () => ({ k: 1 })) };
    const { text } = await bed.send(JSON.stringify(bed.call("/echo", { method: "POST", payload })));
    expect({ inernalError: "", ...JSON.parse(text).rows[0] }).toMatchObject({ pincStatus, inernalError });
  });
});

describe("numbers that JSON does not have", () => {
  it.each(["payload", "queryString"])("are a row that names %s", async (field) => {
    const transport = createConnectTransport({ baseUrl: bed.harness.url, httpVersion: "2", useBinaryFormat: true });
    for (const number of [Number.NaN, Number.POSITIVE_INFINITY, Number.NEGATIVE_INFINITY]) {
      const { rows } = await createClient(RelayService, transport).call({
        ...bed.call("/echo"),
        responseMode: 0,
        call: { url: `${bed.harness.sandbox.origin}/echo`, method: "POST", [field]: { list: [{ number }] } },
      });
      expect(rows[0]).toMatchObject({ errorType: "CALL_FORMAT_ERROR", inernalError: expect.stringContaining(field) });
    }
  });

  it("are a row for 1e400, which is a number of JSON but no double", async () => {
    const { text } = await bed.send(withMembers('"payload":{"n":1e400}'));
    expect(JSON.parse(text)).toMatchObject({ rows: [{ errorType: "CALL_FORMAT_ERROR" }] });
  });
});

describe("keys that mean something to JavaScript", () => {
  const payload = '{"constructor":{"prototype":{"admin":true}},"toJSON":1,"hasOwnProperty":"x"}';
  const proto = '{"__proto__":{"admin":true},"b":{"__proto__":[1]}}';

  it("arrive as written over the JSON route, __proto__ included", async () => {
    const text = `{"url":"${bed.harness.sandbox.origin}/echo","method":"POST","payload":${proto},"queryString":${proto}}`;
    const path = `/oauth/method/sandbox/call?user_id=ada&public_key=${bed.application.publicKey}`;
    const answer = await bed.send(text, {}, { path });
    expect(JSON.parse(answer.text)).toMatchObject({ rows: [{ pincStatus: "success" }] });
    const sent = bed.harness.sandbox.requests.at(-1);
    expect(sent?.body.toString()).toBe(proto);
    const query = `?__proto__=${encodeURIComponent('{"admin":true}')}&b=${encodeURIComponent('{"__proto__":[1]}')}`;
    expect(sent?.target).toBe(`/echo${query}`);
    expect(Reflect.get({}, "admin")).toBeUndefined();
  });

  it.each(PROTOCOLS)("arrive as written over %s", async (protocol) => {
    const caller = new Map(createCallers(bed.harness.url)).get(protocol) as Caller;
    const row = await caller(bed.call("/echo", { method: "POST", payload: JSON.parse(payload) }));
    expect(row.pincStatus).toBe("success");
    expect(bed.harness.sandbox.requests.at(-1)?.body.toString()).toBe(payload);
  });

  // protobuf-es keeps a Struct in plain objects, in which a member of this name cannot be: what is left is sent.
  it("are lost over the typed protocols when they are __proto__, and pollute nothing", async () => {
    const { text } = await bed.send(withMembers(`"payload":${proto},"queryString":${proto}`));
    expect(JSON.parse(text)).toMatchObject({ rows: [{ pincStatus: "success" }] });
    const sent = bed.harness.sandbox.requests.at(-1);
    expect(sent?.body.toString()).toBe('{"b":{}}');
    expect(sent?.target).toBe("/echo?b=%7B%7D");
    expect(Reflect.get({}, "admin")).toBeUndefined();
  });
});
