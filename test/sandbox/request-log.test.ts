import { describe, expect, it } from "vitest";
import { createRequestLog, createSandboxRequest } from "../../src/sandbox/router.js";

const requestOf = (target: string, bytes: number) =>
  createSandboxRequest({
    method: "POST",
    target,
    httpVersion: "1.1",
    rawHeaders: [],
    body: Buffer.alloc(bytes),
    authorized: true,
  });

describe("createRequestLog()", () => {
  it("drops the oldest beyond the number or the bytes, but never the newest", () => {
    const log = createRequestLog({ maxRequests: 3, maxBytes: 10 });
    const targets = () => log.requests.map(({ target }) => target).join("");
    for (const target of "abcd") log.add(requestOf(target, 1));
    expect(targets()).toBe("bcd");
    log.add(requestOf("e", 9));
    expect(targets()).toBe("de");
    log.add(requestOf("f", 11));
    expect(targets()).toBe("f");
    log.add(requestOf("g", 0));
    expect(targets()).toBe("g");
  });
});
