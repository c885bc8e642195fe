import { gzipSync } from "node:zlib";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { createCallers, postRest } from "../support/callers.js";
import { type Harness, startHarness, type TestApplication } from "../support/harness.js";
import { type RawProvider, startRawProvider } from "../support/raw-provider.js";
import { createStreamCallers } from "../support/stream-callers.js";

const HALF = "half a te";

/** Heads of answers that end with the connection, and one that does not. */
const ANSWERS: Readonly<Record<string, readonly [head: string, body: string | Buffer]>> = {
  "/text": ["HTTP/1.1 200 OK\r\nContent-Type: text/plain", HALF],
  "/old": ["HTTP/1.0 200 OK\r\nContent-Type: text/plain", HALF],
  "/binary": ["HTTP/1.1 200 OK\r\nContent-Type: image/png", HALF],
  "/cut-json": ["HTTP/1.1 200 OK\r\nContent-Type: application/json", '{"a":'],
  "/number": ["HTTP/1.1 200 OK\r\nContent-Type: application/json", "12"],
  "/large": ["HTTP/1.1 200 OK\r\nContent-Type: text/plain", "x".repeat(500_000)],
  "/error": ["HTTP/1.1 500 No\r\nContent-Type: text/plain", HALF],
  "/empty": ["HTTP/1.1 200 OK\r\nContent-Type: text/plain", ""],
  "/empty-gzip": ["HTTP/1.1 200 OK\r\nContent-Encoding: gzip", ""],
  "/empty-unknown": ["HTTP/1.1 200 OK\r\nContent-Encoding: compress", ""],
  "/json": ["HTTP/1.1 200 OK\r\nContent-Type: application/json", '{"a":1}\n'],
  "/gzip": ["HTTP/1.1 200 OK\r\nContent-Encoding: gzip", gzipSync(HALF)],
  "/length": [`HTTP/1.1 200 OK\r\nContent-Length: ${HALF.length}`, HALF],
  "/chunks": ["HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked", "1\r\nx\r\n0\r\n\r\n"],
  "/no-content": ["HTTP/1.1 204 No Content", ""],
};
const OPEN_ENDED = ["/text", "/old", "/binary", "/cut-json", "/number", "/large", "/error"].concat([
  "/empty",
  "/empty-gzip",
  "/empty-unknown",
]);
const WHOLE = ["/json", "/gzip", "/length", "/chunks", "/no-content"];

let provider: RawProvider;
let harness: Harness;
let application: TestApplication;

beforeAll(async () => {
  provider = await startRawProvider((socket, { head }) => {
    const [fields, body] = ANSWERS[head.split(" ")[1] as string] as readonly [string, string | Buffer];
    socket.end(Buffer.concat([Buffer.from(`${fields}\r\n\r\n`), Buffer.from(body as string)]));
  });
  harness = await startHarness({ providers: [{ name: "raw", apiOrigins: [provider.origin] }] });
  application = await harness.createApplication();
  await harness.connect(application, "u", { providerName: "raw" });
});

afterAll(async () => {
  await harness.close();
  await provider.close();
});

const callTo = (path: string, call: object = {}) => ({
  providerName: "raw",
  userId: "u",
  publicKey: application.publicKey,
  call: { url: provider.origin + path, method: "GET", ...call },
});

describe("the row of an answer that ends with the connection", () => {
  it.each(OPEN_ENDED)("says that the end may be missing: %s", async (path) => {
    for (const [protocol, caller] of createCallers(harness.url)) {
      expect({ protocol, ...(await caller(callTo(path))) }).toMatchObject({ protocol, possiblyTruncated: true });
    }
  });

  it("says so beside the exact bytes", async () => {
    for (const [protocol, caller] of createCallers(harness.url)) {
      const row = await caller({ ...callTo("/json"), responseMode: "RESPONSE_MODE_BODY" });
      if (protocol !== "REST") expect({ protocol, ...row }).toMatchObject({ protocol, possiblyTruncated: true });
    }
  });

  it.each(WHOLE)("says nothing where the end is known: %s", async (path) => {
    for (const [protocol, caller] of createCallers(harness.url)) {
      expect({ protocol, ...(await caller(callTo(path))) }).not.toHaveProperty("possiblyTruncated");
    }
  });

  it("says nothing of an answer to HEAD", async () => {
    const { text } = await postRest(harness.url, callTo("/text", { method: "HEAD" }));
    expect(text).not.toContain("possiblyTruncated");
  });
});

describe("the head of a stream that ends with the connection", () => {
  it.each([...OPEN_ENDED, "/json"])("says that the end may be missing: %s", async (path) => {
    for (const [protocol, caller] of createStreamCallers(harness.url)) {
      const { head } = await caller(callTo(path));
      if (protocol.startsWith("raw")) expect(head?.headers).toMatchObject({ "x-possibly-truncated": "true" });
      else expect(head).toMatchObject({ possiblyTruncated: true });
    }
  });

  it.each(WHOLE.filter((path) => path !== "/json"))("says nothing where the end is known: %s", async (path) => {
    for (const [, caller] of createStreamCallers(harness.url)) {
      const { head } = await caller(callTo(path));
      expect(head).toBeDefined();
      expect(head).not.toMatchObject({ possiblyTruncated: true });
      expect(head?.headers).not.toHaveProperty("x-possibly-truncated");
    }
  });
});
