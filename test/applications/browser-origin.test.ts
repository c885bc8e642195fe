import { describe, expect, it } from "vitest";
import { parseOrigin } from "../../src/applications/application.js";

describe("parseOrigin()", () => {
  it.each([
    ["", "must be https://host"],
    ["*", "a wildcard"],
    ["null", "must not be null"],
    ["app.example.com", "must be https://host"],
    ["//app.example.com", "must be https://host"],
    ["https:app.example.com", "must be https://host"],
    ["https:/app.example.com", "must be https://host"],
    ["https://", "must be https://host"],
    ["https://*.example.com", "must be https://host"],
    ["https://user@app.example.com", "must be https://host"],
    ["https://app.example.com?x", "must be https://host"],
    ["https://app.example.com#x", "must be https://host"],
    ["https://app.example.com\\x", "must be https://host"],
    [" https://app.example.com", "must be https://host"],
    ["https://app.example.com\n", "must be https://host"],
    ["https://a,https://b", "must be https://host"],
    ["https://a,b", "must be https://host"],
    ["https://app.example.com:99999", "must be https://host"],
    ["file:///x", "must be https://host"],
    ["javascript:1", "must be https://host"],
    ["https://app.example.com/path", "must have no path: write https://app.example.com"],
    ["https://app.example.com//", "must have no path"],
  ])("refuses %j", (text, problem) => expect(parseOrigin(text)).toEqual({ problem: expect.stringContaining(problem) }));

  it.each([
    ["https://app.example.com", "https://app.example.com"],
    ["https://app.example.com/", "https://app.example.com"],
    ["HTTPS://App.Example.com:443", "https://app.example.com"],
    ["https://app.example.com:8443", "https://app.example.com:8443"],
    ["http://localhost:3000", "http://localhost:3000"],
    ["http://[::1]:3000", "http://[::1]:3000"],
    ["https://bücher.example", "https://xn--bcher-kva.example"],
  ])("reads %j as browsers send it: %j", (text, value) => expect(parseOrigin(text)).toEqual({ value }));

  it("refuses one that is too long for an index of PostgreSQL", () => {
    expect(parseOrigin(`https://${"a.".repeat(1019)}b`)).toMatchObject({ value: expect.any(String) });
    expect(parseOrigin(`https://${"a.".repeat(1020)}b`)).toEqual({ problem: "must have at most 2048 characters" });
  });

  it("reads letters of Latin-1 also when it has read many", () => {
    const value = "https://xn--bcher-kva.example";
    const read = Array.from({ length: 20_000 }, () => parseOrigin("https://bücher.example"));
    expect(read.filter((parsed) => !("value" in parsed && parsed.value === value))).toEqual([]);
  });
});
