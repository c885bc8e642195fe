import { describe, expect, it } from "vitest";
import { parseCidr } from "../../src/applications/application.js";

describe("parseCidr()", () => {
  it.each([
    "",
    " ",
    "*",
    "localhost",
    "10.0.0",
    "10.0.0.0/",
    "10.0.0.0/33",
    "10.0.0.0/-1",
    "10.0.0.0/8/8",
    "10.0.0.0/0x8",
    "010.0.0.0/8",
    "10.0.0.0/8,11.0.0.0/8",
    "10.0.0.0/8,",
    " 10.0.0.0/8",
    "10.0.0.0 /8",
    "2001:db8::/129",
    "2001:db8:::/32",
    "[2001:db8::]/32",
    "fe80::1%eth0",
    "fe80::%eth0/64",
  ])("refuses %j", (text) =>
    expect(parseCidr(text)).toEqual({ problem: expect.stringContaining("must be an address") }),
  );

  it.each([
    "10.0.0.1/8",
    "192.0.2.129/24",
    "255.255.255.255/31",
    "0.0.0.1/0",
    "2001:db8::1/32",
    "::1/0",
    "::ffff:10.0.0.1/104",
  ])("refuses %j, whose address lies inside its network", (text) =>
    expect(parseCidr(text)).toEqual({ problem: expect.stringContaining("has address bits beyond its /") }),
  );

  it.each([
    "10.0.0.0/8",
    "192.0.2.128/25",
    "192.0.2.7",
    "192.0.2.7/32",
    "0.0.0.0/0",
    "2001:db8::/32",
    "2001:DB8:0:0:0:0:0:0/32",
    "::/0",
    "::1",
    "::1/128",
    "::ffff:10.0.0.0/104",
    "1:2:3:4:5:6:7:8/128",
    "1:2:3:4:5:6:7::/112",
  ])("takes %j", (text) => expect(parseCidr(text)).toEqual({ value: text }));
});
