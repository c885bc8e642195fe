import { describe, expect, it } from "vitest";
import { fieldsFromRaw } from "../../src/upstream/exchange.js";

const raw = (...lines: string[]) => lines.map((line) => Buffer.from(line, "latin1"));

describe("fieldsFromRaw()", () => {
  it("keeps lines as received: order, case, repetition and bytes above 127", () => {
    const lines = [
      "X-One",
      "1",
      "x-ONE",
      "\xe9\xff",
      "Set-Cookie",
      "a",
      "Set-Cookie",
      "b",
      "__proto__",
      "x",
      "constructor",
      "",
    ];
    expect(fieldsFromRaw(raw(...lines)).lines).toEqual(lines);
  });

  it("finds the fields it must know in any case", () => {
    const fields = fieldsFromRaw(
      raw("CONTENT-LENGTH", "12", "content-Encoding", "gzip", "Transfer-Encoding", "chunked"),
    );
    expect(fields).toMatchObject({ contentLength: 12, contentEncoding: "gzip", transferEncoding: "chunked" });
  });

  it("joins repeated codings", () => {
    const fields = fieldsFromRaw(
      raw("Content-Encoding", "gzip", "content-encoding", "br", "Transfer-Encoding", "a", "transfer-encoding", "b"),
    );
    expect(fields).toMatchObject({ contentEncoding: "gzip, br", transferEncoding: "a, b" });
  });

  it("is not misled by names of the same length", () => {
    expect(fieldsFromRaw(raw("Content-Langth", "9", "Content-Encodinq", "gzip"))).toMatchObject({
      contentLength: 0,
      contentEncoding: undefined,
      transferEncoding: undefined,
    });
  });

  it.each(["", "abc", "-", "NaN"])("takes the length %j as none", (value) => {
    expect(fieldsFromRaw(raw("Content-Length", value)).contentLength).toBe(0);
  });

  it("reads an empty head", () => {
    expect(fieldsFromRaw([])).toMatchObject({ lines: [], contentLength: 0 });
  });
});
