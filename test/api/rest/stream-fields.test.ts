import { describe, expect, it } from "vitest";
import { fieldsFromHead } from "../../../src/api/rest/stream-handler.js";
import type { AnswerHead } from "../../../src/call/outcome.js";

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
    ...[
      "Accept-Ranges",
      "Allow",
      "Content-Disposition",
      "Content-Language",
      "Content-Range",
      "Last-Modified",
      "Retry-After",
    ],
    ...["RateLimit-Policy", "X-RateLimit-Reset", "anthropic-ratelimit-tokens-remaining", "X-Rate-Limit-Limit"],
    ...["X-Total-Count", "X-Next-Page", "X-Pagination-Page", "X-WP-TotalPages"],
    ...["Request-Id", "x-correlation-id", "X-GitHub-Request-Id", "X-Slack-Req-Id", "X-OAuth-Scopes", "Stripe-Version"],
    ...["X-Amz-Meta-Color", "X-Goog-Hash", "X-Ms-Version", "OData-Version", "openai-processing-ms", "X-App-Usage"],
  ])("passes on %s under its name", (name) => {
    expect(fieldsOf([name, "v"])).toEqual({ ...OURS, [name.toLowerCase()]: "v" });
  });

  it.each([
    // What browsers act on.
    ...["Access-Control-Allow-Origin", "access-control-expose-headers", "Clear-Site-Data", "Content-Security-Policy"],
    ...["Cross-Origin-Opener-Policy", "Refresh", "Service-Worker-Allowed", "Strict-Transport-Security", "Alt-Svc"],
    ...["X-Content-Type-Options", "SourceMap", "X-Frame-Options", "Location", "Content-Location", "WWW-Authenticate"],
    // What proxies, caches and web servers act on.
    ...[
      "Cache-Control",
      "CDN-Cache-Control",
      "Surrogate-Control",
      "Edge-Control",
      "Cache-Tag",
      "Vary",
      "Age",
      "Expires",
    ],
    ...["X-Accel-Redirect", "X-Accel-Buffering", "X-Sendfile", "X-Sendfile2", "X-LIGHTTPD-send-file", "X-Reproxy-URL"],
    ...["X-Reproxy-File", "X-LiteSpeed-Location", "X-LiteSpeed-Cache-Control", "X-Cache-Tag", "Server", "Via", "Date"],
    // What HTTP/2 does not write, what speaks of other bytes, and what is the relay's own.
    ...["HTTP2-Settings", "Content-Encoding", "Content-Length", "X-Call-Id", "X-Error-Type", "X-Request-Id"],
    ...["X-Provider-Location", "X-Own"],
  ])("tells %s under a name that nobody acts on", (name) => {
    expect(fieldsOf([name, "v"])).toEqual({ ...OURS, [`x-provider-${name.toLowerCase()}`]: "v" });
  });

  it("passes on links to further pages, and tells those that are loaded by themselves under another name", () => {
    const page = '<https://api.test/items?page=2>; rel="next"';
    expect(fieldsOf(["Link", page])).toEqual({ ...OURS, link: page });
    for (const rel of ["preload", "Preconnect", "modulepreload", "stylesheet"]) {
      const link = `${page}, </a>; rel=${rel}`;
      expect(fieldsOf(["Link", link])).toEqual({ ...OURS, "x-provider-link": link });
    }
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
