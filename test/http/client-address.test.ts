import { describe, expect, it } from "vitest";
import { createClientAddress, type HttpRequest } from "../../src/http/exchange.js";
import { createAddressMatcher } from "../../src/lib/address-list.js";

const clientAddress = createClientAddress(createAddressMatcher(["10.0.0.0/8"]));

function requestFrom(peer: string | undefined, forwarded?: string): HttpRequest {
  const headers = forwarded === undefined ? {} : { "x-forwarded-for": forwarded };
  return { socket: { remoteAddress: peer }, headers } as HttpRequest;
}

describe("createClientAddress()", () => {
  it.each([
    ["nobody trusted sent the field", "192.0.2.9", "198.51.100.1", "192.0.2.9"],
    ["a client made up an entry in front", "10.0.0.1", "127.0.0.1, 198.51.100.1", "198.51.100.1"],
    ["two trusted proxies stand behind each other", "10.0.0.1", "198.51.100.1, 10.9.9.9", "198.51.100.1"],
    ["only proxies are named", "10.0.0.1", "10.0.0.2, 10.0.0.3", "10.0.0.1"],
    ["the peer is IPv4-mapped", "::ffff:10.0.0.1", "::ffff:198.51.100.1", "198.51.100.1"],
    ["a proxy writes the port, too", "10.0.0.1", "198.51.100.1:49152", "198.51.100.1"],
    ["a proxy writes the port of IPv6", "10.0.0.1", "[2001:db8::1]:443, 10.0.0.2:80", "2001:db8::1"],
    ["a proxy writes IPv6 in brackets", "10.0.0.1", "[2001:db8::1]", "2001:db8::1"],
    ["what was forwarded is no address", "10.0.0.1", "unknown", "unknown"],
  ])("knows the client when %s", (_when, peer, forwarded, expected) => {
    expect(clientAddress(requestFrom(peer, forwarded))).toBe(expected);
  });

  it("is the peer without the field, and nothing for a socket that is gone", () => {
    expect(clientAddress(requestFrom("10.0.0.1"))).toBe("10.0.0.1");
    expect(clientAddress(requestFrom(undefined))).toBe("");
  });
});
