import { describe, expect, it } from "vitest";
import type { AnswerHead } from "../../src/relay/outcome.js";
import { fieldsFromHead } from "../../src/rest/stream-fields.js";

const head = (headers: AnswerHead["headers"], statusCode = 200): AnswerHead => ({
  statusCode,
  contentType: "",
  headers,
});
const fieldsOf = (...headers: AnswerHead["headers"]) => fieldsFromHead(head(headers), "id", undefined);

/** What every answer has, whatever the provider says. */
const OURS = {
  "x-call-id": "id",
  "cache-control": "no-store",
  "content-security-policy": "sandbox; default-src 'none'",
  "cross-origin-resource-policy": "same-origin",
  "x-content-type-options": "nosniff",
};

describe("fieldsFromHead()", () => {
  it("passes on what speaks of the answer", () => {
    expect(
      fieldsOf(["Content-Type", "text/csv; charset=utf-8"], ["ETag", '"1"'], ["X-RateLimit-Remaining", "9"]),
    ).toEqual({ ...OURS, "content-type": "text/csv; charset=utf-8", etag: '"1"', "x-ratelimit-remaining": "9" });
  });

  it.each([
    "Access-Control-Allow-Origin",
    "access-control-expose-headers",
    "Cache-Control",
    "Clear-Site-Data",
    "Content-Encoding",
    "Content-Security-Policy",
    "Cross-Origin-Opener-Policy",
    "Refresh",
    "Service-Worker-Allowed",
    "Strict-Transport-Security",
    "Vary",
    "X-Accel-Redirect",
    "X-Call-Id",
    "X-Content-Type-Options",
    "X-Error-Type",
    "X-Provider-Location",
    "X-Sendfile",
  ])("does not pass on %s", (name) => {
    expect(fieldsOf([name, "v"])).toEqual(OURS);
  });

  it.each(["Location", "WWW-Authenticate", "Content-Length"])("tells %s under a name that nobody acts on", (name) => {
    expect(fieldsOf([name, "v"])).toEqual({ ...OURS, [`x-provider-${name.toLowerCase()}`]: "v" });
  });

  it("leaves a value out that cannot be written", () => {
    expect(fieldsOf(["X-A", "a\x7fb"])).toEqual(OURS);
  });

  it("tells a browser the names that it may read", () => {
    const cors = { vary: "Origin", "access-control-allow-origin": "https://app.test" };
    expect(fieldsFromHead(head([["ETag", "1"]]), "id", cors)).toEqual({
      ...OURS,
      ...cors,
      etag: "1",
      "access-control-expose-headers": "etag, x-call-id, x-request-id",
    });
  });
});
