import { describe, expect, it } from "vitest";
import { decodeRequest, requestFromLargeJson } from "../../../src/api/fast/decode.js";
import { atOnce } from "../../../src/lib/turns.js";

const LONG = Buffer.from(Uint8Array.from({ length: 300_001 }, (_, at) => (at * 167) & 0xff));
const BASE64 = LONG.toString("base64");
const MANY_MEMBERS = Array.from({ length: 30_000 }, (_, at) => `"h${at}":""`).join();
const request = (call: string, before = "") =>
  Buffer.from(`{${before}"providerName":"p", "call" : {"url":"https://x/","method":"POST"${call}},"userId":"ü"}`);

describe("requestFromLargeJson()", () => {
  it.each([
    ["base64", request(`,"body":"${BASE64}"`)],
    ["with escapes", request(`, "body": "${BASE64.replaceAll("/", "\\/")}" ,"headers":{"a":"b"}`)],
    ["URL-safe, without padding", request(`,"body":"${LONG.toString("base64url")}"`)],
    ["by an escaped name", request(`,"b\\u006fdy":"${BASE64}"`)],
  ])("reads what protobuf-es reads: %s", (_what, text) => {
    const read = atOnce(requestFromLargeJson(text));
    expect(read?.call?.body.length).toBe(LONG.length);
    const expected = decodeRequest("json", text);
    expect(Buffer.from(read?.call?.body ?? []).equals(Buffer.from(expected?.call?.body ?? []))).toBe(true);
    const without = (message: typeof read) => ({ ...message, call: { ...message?.call, body: undefined } });
    expect(without(read)).toEqual(without(expected));
  });

  it.each([
    ["no body", request(',"payload":{"a":1}')],
    ["null", request(',"body":null')],
    ["two bodies", request(`,"body":"${BASE64}","body":"YQ=="`)],
    ["two calls", request(`,"body":"${BASE64}"`, '"call":{},')],
    ["no base64", request(',"body":"!"')],
    ["a data URL", request(`,"body":"data:text/plain;base64,${BASE64}"`)],
    ["an escaped data URL", request(`,"body":"\\u0064ata:;base64,${BASE64}"`)],
    ["no JSON", request(`,"body":"${BASE64}",`)],
    ["no JSON within the body", request(`,"body":"\\q${BASE64}"`)],
    ["no UTF-8", Buffer.concat([Buffer.from([0xff]), request(`,"body":"${BASE64}"`)])],
    ["an unknown field", request(`,"body":"${BASE64}","what":1`)],
    ["an unknown field elsewhere", request(`,"body":"${BASE64}"`, '"what":1,')],
    ["no object", Buffer.from("[]")],
  ])("leaves it to protobuf-es: %s", (_what, text) => {
    expect(atOnce(requestFromLargeJson(text))).toBeUndefined();
  });

  it.each([
    ["with more members than a call may have", request(`,"body":"${BASE64}","headers":{${MANY_MEMBERS}}`)],
    ["with as many of one name", request(`,"headers":{${'"":"",'.repeat(30_000)}"":""}`)],
  ])("refuses what protobuf-es would take long for: %s", (_what, text) => {
    expect(() => atOnce(requestFromLargeJson(text))).toThrow("The message has more than 30000 keys.");
  });
});
