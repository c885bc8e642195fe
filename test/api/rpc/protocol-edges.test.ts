import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { type EdgeBed, PATH, startEdgeBed } from "./edge-bed.js";
import { nestedCall } from "./nested-call.js";

const SECRET = "CANARY_INPUT_0123456789";

let bed: EdgeBed;

beforeAll(async () => {
  bed = await startEdgeBed();
});

afterAll(() => bed.close());

const good = () => JSON.stringify(bed.call("/me"));

describe("Connect", () => {
  it.each([
    ["GET", PATH],
    ["GET", `${PATH}?connect=v1&encoding=json&message=%7B%7D`],
    ["PUT", PATH],
    ["DELETE", PATH],
    ["OPTIONS", PATH],
  ] as const)("does not take %s %s, and names what it takes", async (method, path) => {
    const answer = await bed.send(null, {}, { method, path });
    expect(answer.status).toBe(405);
    expect(answer.headers["allow"]).toBe("POST");
    await bed.expectGoodCall();
  });

  it.each(["", "text/plain", "application/x-www-form-urlencoded", "application/xml", "application/connect+json"])(
    "answers 415 to content-type '%s'",
    async (contentType) => {
      expect((await bed.send(good(), { "content-type": contentType })).status).toBe(415);
      await bed.expectGoodCall();
    },
  );

  it.each([
    "application/json; charset=utf-8",
    'application/json; charset="utf-8"',
    'application/json ; Charset="UTF-8"',
    "APPLICATION/JSON;\tcharset=UTF8",
  ])("takes %s", async (contentType) => {
    expect((await bed.send(good(), { "content-type": contentType })).status).toBe(200);
  });

  it("answers 415 to JSON in another charset", async () => {
    expect((await bed.send(good(), { "content-type": 'application/json; charset="utf-16"' })).status).toBe(415);
  });

  it.each([
    ["abc", 400, "invalid_argument"],
    ["-1", 400, "invalid_argument"],
    ["1.5", 400, "invalid_argument"],
    [" ", 400, "invalid_argument"],
    [SECRET, 400, "invalid_argument"],
    ["12345678901", 400, "invalid_argument"],
    ["9999999999", 400, "invalid_argument"],
    ["0", 504, "deadline_exceeded"],
  ])("answers Connect-Timeout-Ms: %s with %d %s, and performs nothing", async (timeout, status, code) => {
    const before = bed.harness.sandbox.requests.length;
    const answer = await bed.send(good(), { "connect-timeout-ms": timeout });
    expect(answer.status).toBe(status);
    expect(JSON.parse(answer.text)).toMatchObject({ code });
    expect(answer.text).not.toContain(SECRET);
    expect(bed.harness.sandbox.requests.length).toBe(before);
  });

  it("takes a timeout of a day", async () => {
    expect((await bed.send(good(), { "connect-timeout-ms": "86400000" })).status).toBe(200);
  });

  it.each([
    ["no JSON", SECRET, "relay.v1.CallRequest"],
    ["JSON that is cut off", `{"userId":"${SECRET}`, "relay.v1.CallRequest"],
    ["a string", `"${SECRET}"`, "relay.v1.CallRequest"],
    ["an array", `["${SECRET}"]`, "relay.v1.CallRequest"],
    ["two objects", `{}{"userId":"${SECRET}"}`, "relay.v1.CallRequest"],
    ["an unknown field", `{"${SECRET}":1}`, "relay.v1.CallRequest"],
    ["an unknown field of the call", `{"call":{"${SECRET}":1}}`, "relay.v1.CallDescription"],
    ["an unknown field with a long name", `{"${SECRET.repeat(100)}":1}`, undefined],
    ["an unknown field with a line break", `{"${SECRET}\\n":1}`, "relay.v1.CallRequest"],
    ["a key twice", `{"${SECRET}":1,"${SECRET}":2}`, "relay.v1.CallRequest"],
    ["a field twice, by both names", `{"userId":"${SECRET}","user_id":"b"}`, "relay.v1.CallRequest.user_id"],
    ["a key of the payload twice", `{"call":{"payload":{"${SECRET}":1,"${SECRET}":2}}}`, "relay.v1.CallRequest"],
    ["a header twice", `{"call":{"headers":{"${SECRET}":"1","${SECRET}":"2"}}}`, "relay.v1.CallRequest"],
    ["a number for text", `{"userId":123456}`, "relay.v1.CallRequest.user_id"],
    ["an object for text", `{"userId":{"${SECRET}":1}}`, "relay.v1.CallRequest.user_id"],
    ["an unknown name of an enum", `{"responseMode":"${SECRET}"}`, "relay.v1.ResponseMode"],
    ["bytes that are no base64", `{"call":{"body":"${SECRET}!"}}`, "relay.v1.CallDescription.body"],
    ["text for an object", `{"call":{"payload":"${SECRET}"}}`, "google.protobuf.Struct"],
    ["null in a map", `{"call":{"headers":{"${SECRET}":null}}}`, "relay.v1.CallDescription.headers"],
    ["bytes that are not UTF-8", Buffer.from(`{"userId":"${SECRET}\xff"}`, "latin1"), undefined],
    ["UTF-16", Buffer.from(`{"userId":"${SECRET}"}`, "utf16le"), undefined],
    ["nothing", "", "relay.v1.CallRequest"],
  ])("says where a message is wrong without quoting it: %s", async (_what, body, place) => {
    for (const headers of [{}, { "accept-encoding": "gzip" }] as Record<string, string>[]) {
      const answer = await bed.send(body, headers);
      expect(answer.status).toBe(400);
      const { code, message } = JSON.parse(answer.text) as { code: string; message: string };
      expect(code).toBe("invalid_argument");
      if (place !== undefined) expect(message).toContain(`${place} from JSON`);
      expect(message).not.toMatch(/CANARY|123456/);
    }
    expect(bed.harness.logLines.join("")).not.toContain(SECRET);
    await bed.expectGoodCall();
  });

  it("takes a byte order mark, as the JSON route does", async () => {
    expect((await bed.send(`\ufeff${good()}`)).status).toBe(200);
  });

  it.each([
    ["a tag that no field has", Buffer.from([0xff])],
    ["text that is not UTF-8", Buffer.from([0x0a, 0x01, 0xff])],
    ["a Struct of 100 levels", nestedCall(100)],
    ["a Struct of 20,000 levels", nestedCall(20_000)],
  ])("answers 400 to protobuf that cannot be decoded: %s", async (_what, body) => {
    const answer = await bed.send(body, { "content-type": "application/proto" });
    expect(answer.status).toBe(400);
    expect(JSON.parse(answer.text)).toMatchObject({ code: "invalid_argument" });
    await bed.expectGoodCall();
  });
});
