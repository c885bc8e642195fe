import { describe, expect, it, vi } from "vitest";
import { bytesOf, createChunks } from "../../src/lib/chunks.js";
import { loadProviders } from "../../src/providers/catalog.js";
import { isExpirySignal } from "../../src/providers/credential.js";
import type { Provider } from "../../src/providers/provider.js";
import { providerFrom } from "./provider-for-test.js";

const provider = providerFrom({
  expirySignals: [
    { statusCode: 498 },
    { statusCode: 200, member: "error", values: ["token_expired", "invalid_auth"] },
    { statusCode: 400, member: "error.code", values: ["190", "{}", "[190]"] },
    { statusCode: 404, pastLifetime: true },
    { statusCode: 403, member: "errors.0.message", values: ["Expired \u201ctoken\u201d", "true"] },
  ],
});

const { catalog } = loadProviders({ paths: [], allowLoopback: false });

describe("isExpirySignal()", () => {
  it.each([
    [498, "", true],
    [498, "{}", true],
    [498, "<html>", true],
    [200, "<html>", false],
    [200, '{"error":"token_expired"', false],
    [200, '{"ok":false,"error":"token_expired"}', true],
    [200, ' {"error" : "invalid_auth"} ', true],
    [200, '{"error":"token\\u005fexpired"}', true],
    [200, '{"error":"not_found"}', false],
    [200, '{"error":"not_found","error":"token_expired"}', true],
    [200, '{"error":"token_expired","error":"not_found"}', false],
    [200, '{"data":{"error":"token_expired"}}', false],
    [200, '{"error":["token_expired"]}', false],
    [200, '"token_expired"', false],
    [200, "", false],
    [200, "null", false],
    [201, '{"error":"token_expired"}', false],
    [401, '{"error":"token_expired"}', false],
    [400, '{"error":{"code":190}}', true],
    [400, '{"error":{"code":"190"}}', true],
    [400, '{"error":{"code":1900}}', false],
    [400, '{"error":{"code":{}}}', false],
    [400, '{"error":{"code":[190]}}', false],
    [400, '{"error":190}', false],
    [403, '{"errors":[{"message":"Expired \u201ctoken\u201d"}]}', true],
    [403, '{"errors":[{"message":true}]}', true],
    [403, '{"errors":[{},{"message":true}]}', false],
    [403, '{"errors":[]}', false],
  ])("%i %s: %s", (statusCode, body, expected) => {
    expect(isExpirySignal(provider, statusCode, bytesOf(Buffer.from(body)), false)).toBe(expected);
  });

  it("counts a status that means other things too only past the lifetime of the token", () => {
    const heard = (isPastLifetime: boolean) =>
      isExpirySignal(provider, 404, bytesOf(Buffer.from("{}")), isPastLifetime);
    expect([heard(false), heard(true)]).toEqual([false, true]);
  });

  it.each([
    ["databricks", 403, '{"error_code":403,"message":"Invalid access token. [ReqId: 145ae51b]"}', true],
    ["databricks", 403, '{"error_code":"PERMISSION_DENIED","message":"…"}', false],
    ["goto", 403, '{"int_err_code":"InvalidToken","msg":"Invalid token passed"}', true],
    ["goto", 403, '{"int_err_code":"NotAllowed","msg":"…"}', false],
    ["slack", 200, '{"ok":false,"error":"token_expired"}', true],
  ])("%s answers with status %i and %s: %s", (name, statusCode, body, expected) => {
    const shipped = catalog.find(name) as Provider;
    expect(isExpirySignal(shipped, statusCode, bytesOf(Buffer.from(body)), false)).toBe(expected);
  });

  it("does not join and parse a body that is longer than any error", () => {
    const body = createChunks();
    const join = vi.spyOn(body, "concat");
    for (const piece of ['{"error":"token_expired","data":"', "x".repeat(70_000), '"}']) body.push(Buffer.from(piece));
    expect(isExpirySignal(provider, 200, body, false)).toBe(false);
    expect(isExpirySignal(provider, 498, body, false)).toBe(true);
    expect(join).not.toHaveBeenCalled();
  });

  it("has none by default", () => {
    expect(isExpirySignal(providerFrom({}), 401, bytesOf(Buffer.from("{}")), true)).toBe(false);
  });
});
