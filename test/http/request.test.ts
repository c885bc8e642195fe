import { describe, expect, it } from "vitest";
import { decideRequest } from "../../src/http/dispatch.js";

const HOST = ["Host", "x"];
const LIMITS = { maxHeaders: 100, maxHeaderBytes: 16_384 };

describe("decideRequest()", () => {
  it.each([
    ["HTTP/0.9", 1, 0],
    ["HTTP/2.0 in a request line of HTTP/1", 1, 2],
  ] as const)("refuses %s", (_name, spoken, major) => {
    expect(decideRequest(spoken, major, HOST, LIMITS)?.status).toBe(400);
  });

  it("counts each field, repeated ones too", () => {
    const fields = Array.from({ length: 99 }, () => ["a", "b"]).flat();
    expect(decideRequest(1, 1, [...HOST, ...fields], LIMITS)).toBeUndefined();
    expect(decideRequest(1, 1, [...HOST, ...fields, "a", "b"], LIMITS)?.status).toBe(431);
  });

  it("counts the bytes of HTTP/2, where no parser has", () => {
    const field = (bytes: number) => [":authority", "x", "a", "b".repeat(bytes)];
    const rest = ":authority".length + "x".length + "a".length + 2 * 32;
    expect(decideRequest(2, 2, field(16_384 - rest), LIMITS)).toBeUndefined();
    expect(decideRequest(2, 2, field(16_385 - rest), LIMITS)?.status).toBe(431);
  });

  it("answers 400 for what decideHost() refuses, with its text", () => {
    expect(decideRequest(2, 2, [], LIMITS)).toEqual({ status: 400, text: "The request has no Host; send one." });
  });
});
