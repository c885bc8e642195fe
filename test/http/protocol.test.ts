import { describe, expect, it } from "vitest";
import { decideProtocol } from "../../src/http/listener.js";

const PREFACE = "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n";

describe("decideProtocol()", () => {
  it.each([
    ["nothing", ""],
    ["the first byte of the preface", "P"],
    ["all but the last byte of the preface", PREFACE.slice(0, -1)],
  ])("waits for more after %s", (_name, text) => {
    expect(decideProtocol(Buffer.from(text), undefined)).toBeUndefined();
  });

  it.each([
    ["POST", "PO"],
    ["PROPFIND", "PRO"],
    ["a preface with another version", "PRI * HTTP/3.0\r\n\r\nSM\r\n\r\n"],
    ["a preface that is wrong in its last byte", `${PREFACE.slice(0, -1)}X`],
    ["a TLS ClientHello", "\x16\x03\x01"],
  ])("takes %s for HTTP/1", (_name, text) => {
    expect(decideProtocol(Buffer.from(text, "latin1"), undefined)).toBe("http1");
  });

  it("takes the whole preface for HTTP/2, whatever follows", () => {
    expect(decideProtocol(Buffer.from(PREFACE), undefined)).toBe("http2");
    expect(decideProtocol(Buffer.from(`${PREFACE}\0`), undefined)).toBe("http2");
  });

  it.each([
    ["h2", "G", "http2"],
    ["http/1.1", PREFACE, "http1"],
    [false, PREFACE, "http1"],
    ["h2", "", undefined],
  ] as const)("believes ALPN %j and not the bytes", (alpn, text, protocol) => {
    expect(decideProtocol(Buffer.from(text), alpn)).toBe(protocol);
  });
});
