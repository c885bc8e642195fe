import { describe, expect, it } from "vitest";
import { parseOrigin } from "../../src/providers/origin.js";

const closed = { allowLoopback: false, allowPrivateNetwork: false };

describe("parseOrigin()", () => {
  it.each([
    "https://api.example.com",
    "https://api.example.com:8443",
    "https://xn--bcher-kva.example",
    "https://a-b.co.uk",
  ])("accepts %s", (text) => {
    expect(parseOrigin(text, closed)).toEqual({ kind: "exact", origin: text });
  });

  it.each([
    "",
    "api.example.com",
    "//api.example.com",
    "ftp://api.example.com",
    "HTTPS://api.example.com",
    "https://",
    "https://API.example.com",
    "https://api.example.com/",
    "https://api.example.com/v1",
    "https://api.example.com?x",
    "https://api.example.com#x",
    "https://user@api.example.com",
    "https://api.example.com\\x",
    "https://api.example.com.",
    "https://api..example.com",
    "https://-a.example.com",
    "https://a_b.example.com",
    "https://*.example.com",
    "https://api.example.com:443",
    "https://api.example.com:0443",
    "https://api.example.com:0",
    "https://api.example.com:65536",
    "https://api.example.com:",
    "https://api.example.com:x",
    "https://b\u00fccher.example",
    "https://api.example.com ",
    "https://api.example.com\n",
    "https://xn--.example",
    `https://${"a".repeat(64)}.example.com`,
    `https://${"a.".repeat(126)}com`,
    "https://localhost",
    "https://intranet",
    "https://127.0.0.1",
    "https://10.0.0.1",
    "https://1.2.3.4",
    "https://127.1",
    "https://0x7f.1",
    "https://[::1]",
    "http://api.example.com",
    "http://localhost",
    "http://127.0.0.1:8090",
  ])("refuses %j", (text) => {
    expect(parseOrigin(text, closed)).toBeTypeOf("string");
  });

  it("takes http to loopback with allowLoopback only", () => {
    const loopback = { ...closed, allowLoopback: true };
    for (const text of ["http://127.0.0.1:8090", "http://localhost:3000", "http://127.9.8.7", "https://localhost"]) {
      expect(parseOrigin(text, loopback)).toEqual({ kind: "exact", origin: text });
    }
    for (const text of [
      "http://10.0.0.1",
      "https://10.0.0.1",
      "http://api.example.com",
      "http://127.1",
      "http://localhost:80",
    ]) {
      expect(parseOrigin(text, loopback)).toBeTypeOf("string");
    }
  });

  it("takes addresses and single labels with allowPrivateNetwork, https only", () => {
    const privateNetwork = { ...closed, allowPrivateNetwork: true };
    for (const text of ["https://10.0.0.1", "https://git", "https://192.168.1.1:8443"]) {
      expect(parseOrigin(text, privateNetwork)).toEqual({ kind: "exact", origin: text });
    }
    for (const text of ["http://10.0.0.1", "https://0x0a000001", "https://010.0.0.1", "https://[fd00::1]"]) {
      expect(parseOrigin(text, privateNetwork)).toBeTypeOf("string");
    }
  });
});

describe("parseOrigin() templates", () => {
  it.each([
    ["https://{subdomain}.zendesk.com", ["subdomain"], "https://acme.zendesk.com", ["acme"]],
    ["https://{shop}.{region}.example.com:8443", ["shop", "region"], "https://a.eu.example.com:8443", ["a", "eu"]],
    ["https://{host}", ["host"], "https://git.example.org", ["git.example.org"]],
    ["https://x-{subdomain}.zendesk.com", ["subdomain"], "https://x-acme.zendesk.com", ["acme"]],
    ["https://api.{subdomain}.zendesk.com", ["subdomain"], "https://api.acme.zendesk.com", ["acme"]],
    ["https://{host}:8443", ["host"], "https://git.example.org:8443", ["git.example.org"]],
  ])("%s", (text, parameters, origin, captured) => {
    const rule = parseOrigin(text, closed);
    if (typeof rule === "string" || rule.kind !== "template") throw new Error(String(rule));
    expect(rule.parameters).toEqual(parameters);
    expect(rule.pattern.exec(origin)?.slice(1)).toEqual(captured);
    expect(rule.pattern.test(`${origin}.evil.test`)).toBe(text.endsWith("{host}"));
  });

  it.each([
    "http://{subdomain}.zendesk.com",
    "https://{subdomain}.com",
    "https://{subdomain}.co.uk",
    "https://api.{subdomain}.nagoya.jp",
    "https://{subdomain}.local host.com",
    "https://-{subdomain}.zendesk.com",
    "https://{subdomain}-.zendesk.com",
    "https://{a}{b}.zendesk.com",
    "https://{a}.{a}.zendesk.com",
    "https://{A}.zendesk.com",
    "https://{}.zendesk.com",
    "https://{a b}.zendesk.com",
    "https://{subdomain}.zen+desk.com",
    "https://{subdomain}.zendesk.c_m",
    "https://{subdomain}.0.0.1",
    "https://{subdomain}.zendesk.com.",
    "https://{subdomain}.zendesk.com/api",
    "https://{a}.{b}",
    "https://{host}.",
  ])("refuses %s", (text) => {
    expect(parseOrigin(text, { allowLoopback: true, allowPrivateNetwork: true })).toBeTypeOf("string");
  });
});
