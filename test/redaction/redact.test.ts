import { describe, expect, it } from "vitest";
import { createRedactor } from "../../src/redaction/redact.js";

const TOKEN = 'ya29.a0/AfB_by+C"eQ==';
const redactor = createRedactor([TOKEN]);

describe("createRedactor()", () => {
  it.each([
    ["raw", TOKEN],
    ["URL-encoded", encodeURIComponent(TOKEN)],
    ["URL-encoded in lower case", encodeURIComponent(TOKEN).replace(/%../g, (triplet) => triplet.toLowerCase())],
    ["JSON-escaped", JSON.stringify(TOKEN).slice(1, -1)],
    ["JSON-escaped with escaped solidus", JSON.stringify(TOKEN).slice(1, -1).replaceAll("/", "\\/")],
  ])("takes out the token %s, wherever it stands", (_form, spelled) => {
    expect(redactor.text(`a ${spelled} b ${spelled}`)).toBe("a [redacted] b [redacted]");
    expect(redactor.bytes(Buffer.from(`${spelled}|${spelled}`)).toString()).toBe("[redacted]|[redacted]");
  });

  it.each([0, 1, 2, 3, 4, 5])("takes out the token in base64 behind %i other bytes", (lead) => {
    for (const encoding of ["base64", "base64url"] as const) {
      const encoded = Buffer.from(`${"x".repeat(lead)}${TOKEN} and more`).toString(encoding);
      const text = redactor.text(encoded);
      expect(text).toContain("[redacted]");
      expect(Buffer.from(text.replace("[redacted]", "AAAA"), encoding).toString("latin1")).not.toContain(
        TOKEN.slice(4, -4),
      );
    }
  });

  it("gives the same bytes back when there is nothing to take out", () => {
    const input = Buffer.from(TOKEN.slice(0, -1));
    expect(redactor.bytes(input)).toBe(input);
    expect(redactor.text("plain")).toBe("plain");
  });

  it("takes a long token out in every spelling at every place", () => {
    const token = "gho_16C7e42F292c6912E7710c838347Ae178B4a/+==";
    const long = createRedactor([token]);
    const spelled = [token, encodeURIComponent(token), JSON.stringify(token).slice(1, -1).replaceAll("/", "\\/")];
    for (let lead = 0; lead < 40; lead++) {
      for (const form of spelled) {
        const input = `${"-".repeat(lead)}${form}---`;
        expect(long.text(input)).toBe(`${"-".repeat(lead)}[redacted]---`);
        expect(long.bytes(Buffer.from(input)).toString()).toBe(long.text(input));
      }
      const encoded = Buffer.from(`${"-".repeat(lead)}${token}`).toString("base64");
      expect(long.bytes(Buffer.from(encoded)).toString()).toContain("[redacted]");
    }
  });

  it("leaves short secrets alone, which would match ordinary text", () => {
    expect(createRedactor(["a", ""]).text("banana")).toBe("banana");
  });

  it("searches for every secret", () => {
    expect(createRedactor(["first-token-1", "other-token-2"]).text("first-token-1 other-token-2")).toBe(
      "[redacted] [redacted]",
    );
  });
});
