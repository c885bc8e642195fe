import { describe, expect, it } from "vitest";
import { type AddressPolicy, decideAddress } from "../../src/upstream/address.js";

const STRICT: AddressPolicy = { allowLoopback: false, allowPrivateNetwork: false };

/** Threats N08: range, its first and last address, and the neighbours on both sides with their own verdict. */
const RANGES: ReadonlyArray<
  readonly [range: string, first: string, last: string, before: string | undefined, after: string | undefined]
> = [
  ["0.0.0.0/8", "0.0.0.0", "0.255.255.255", undefined, "1.0.0.0"],
  ["10.0.0.0/8", "10.0.0.0", "10.255.255.255", "9.255.255.255", "11.0.0.0"],
  ["100.64.0.0/10", "100.64.0.0", "100.127.255.255", "100.63.255.255", "100.128.0.0"],
  ["127.0.0.0/8", "127.0.0.0", "127.255.255.255", "126.255.255.255", "128.0.0.0"],
  ["169.254.0.0/16", "169.254.0.0", "169.254.255.255", "169.253.255.255", "169.255.0.0"],
  ["172.16.0.0/12", "172.16.0.0", "172.31.255.255", "172.15.255.255", "172.32.0.0"],
  ["192.0.0.0/24", "192.0.0.0", "192.0.0.255", "191.255.255.255", "192.0.1.0"],
  ["192.0.2.0/24", "192.0.2.0", "192.0.2.255", "192.0.1.255", "192.0.3.0"],
  ["192.88.99.0/24", "192.88.99.0", "192.88.99.255", "192.88.98.255", "192.88.100.0"],
  ["192.168.0.0/16", "192.168.0.0", "192.168.255.255", "192.167.255.255", "192.169.0.0"],
  ["198.18.0.0/15", "198.18.0.0", "198.19.255.255", "198.17.255.255", "198.20.0.0"],
  ["198.51.100.0/24", "198.51.100.0", "198.51.100.255", "198.51.99.255", "198.51.101.0"],
  ["203.0.113.0/24", "203.0.113.0", "203.0.113.255", "203.0.112.255", "203.0.114.0"],
  ["224.0.0.0/4", "224.0.0.0", "239.255.255.255", "223.255.255.255", undefined],
  ["240.0.0.0/4", "240.0.0.0", "255.255.255.254", undefined, undefined],
  ["255.255.255.255/32", "255.255.255.255", "255.255.255.255", undefined, undefined],
  ["::/128", "::", "::", undefined, undefined],
  ["::1/128", "::1", "::1", undefined, undefined],
  ["::ffff:0:0/96", "::ffff:0:0", "::ffff:ffff:ffff", "::fffe:ffff:ffff", "::1:0:0:0"],
  ["64:ff9b::/96", "64:ff9b::", "64:ff9b::ffff:ffff", "64:ff9a:ffff:ffff:ffff:ffff:ffff:ffff", "64:ff9b::1:0:0"],
  [
    "64:ff9b:1::/48",
    "64:ff9b:1::",
    "64:ff9b:1:ffff:ffff:ffff:ffff:ffff",
    "64:ff9b:0:ffff:ffff:ffff:ffff:ffff",
    "64:ff9b:2::",
  ],
  ["100::/64", "100::", "100::ffff:ffff:ffff:ffff", "ff:ffff:ffff:ffff:ffff:ffff:ffff:ffff", undefined],
  ["100:0:0:1::/64", "100:0:0:1::", "100::1:ffff:ffff:ffff:ffff", undefined, "100:0:0:2::"],
  ["2001::/32", "2001::", "2001:0:ffff:ffff:ffff:ffff:ffff:ffff", undefined, undefined],
  [
    "2001::/23",
    "2001::",
    "2001:1ff:ffff:ffff:ffff:ffff:ffff:ffff",
    "2000:ffff:ffff:ffff:ffff:ffff:ffff:ffff",
    "2001:200::",
  ],
  [
    "2001:db8::/32",
    "2001:db8::",
    "2001:db8:ffff:ffff:ffff:ffff:ffff:ffff",
    "2001:db7:ffff:ffff:ffff:ffff:ffff:ffff",
    "2001:db9::",
  ],
  [
    "2002::/16",
    "2002::",
    "2002:ffff:ffff:ffff:ffff:ffff:ffff:ffff",
    "2001:ffff:ffff:ffff:ffff:ffff:ffff:ffff",
    "2003::",
  ],
  [
    "3fff::/20",
    "3fff::",
    "3fff:fff:ffff:ffff:ffff:ffff:ffff:ffff",
    "3ffe:ffff:ffff:ffff:ffff:ffff:ffff:ffff",
    "3fff:1000::",
  ],
  [
    "5f00::/16",
    "5f00::",
    "5f00:ffff:ffff:ffff:ffff:ffff:ffff:ffff",
    "5eff:ffff:ffff:ffff:ffff:ffff:ffff:ffff",
    "5f01::",
  ],
  [
    "fc00::/7",
    "fc00::",
    "fdff:ffff:ffff:ffff:ffff:ffff:ffff:ffff",
    "fbff:ffff:ffff:ffff:ffff:ffff:ffff:ffff",
    "fe00::",
  ],
  [
    "fe80::/10",
    "fe80::",
    "febf:ffff:ffff:ffff:ffff:ffff:ffff:ffff",
    "fe7f:ffff:ffff:ffff:ffff:ffff:ffff:ffff",
    undefined,
  ],
  ["fec0::/10", "fec0::", "feff:ffff:ffff:ffff:ffff:ffff:ffff:ffff", undefined, undefined],
  ["ff00::/8", "ff00::", "ffff:ffff:ffff:ffff:ffff:ffff:ffff:ffff", undefined, undefined],
];

describe("decideAddress()", () => {
  it("knows 33 ranges", () => expect(RANGES).toHaveLength(33));

  it.each(RANGES)("denies %s from first to last, and only that", (_range, first, last, before, after) => {
    expect(decideAddress(first, STRICT).result).toBe("deny");
    expect(decideAddress(last, STRICT).result).toBe("deny");
    if (before !== undefined) expect(decideAddress(before, STRICT)).toEqual({ result: "allow", rule: "public" });
    if (after !== undefined) expect(decideAddress(after, STRICT)).toEqual({ result: "allow", rule: "public" });
  });

  it.each([
    ["223.255.255.255", "public"],
    ["224.0.0.0", "multicast"],
    ["239.255.255.255", "multicast"],
    ["240.0.0.0", "reserved"],
    ["255.255.255.254", "reserved"],
    ["255.255.255.255", "broadcast"],
    ["::", "unspecified"],
    ["::1", "loopback"],
    ["::2", "ipv4-compatible"],
    ["febf::1", "link-local"],
    ["fec0::1", "site-local"],
    ["feff::1", "site-local"],
    ["ff00::", "multicast"],
    ["2001:0:ffff::", "teredo"],
    ["2001:1::", "reserved"],
    ["3fff::1", "documentation"],
    ["169.254.169.254", "link-local"],
    ["100.100.100.200", "metadata"],
    ["168.63.129.16", "metadata"],
    ["fd00:ec2::254", "metadata"],
  ])("calls %s %s where ranges touch or overlap", (ip, rule) => {
    expect(decideAddress(ip, STRICT).rule).toBe(rule);
  });

  it.each([
    ["::ffff:127.0.0.1", "loopback"],
    ["::ffff:7f00:1", "loopback"],
    ["0:0:0:0:0:FFFF:7F00:0001", "loopback"],
    ["::ffff:10.0.0.1", "private"],
    ["::ffff:8.8.8.8", "ipv4-mapped"],
    ["::ffff:169.254.169.254", "ipv4-mapped"],
    ["::ffff:100.100.100.200", "ipv4-mapped"],
    ["::ffff:0.0.0.0", "ipv4-mapped"],
    ["::127.0.0.1", "ipv4-compatible"],
    ["::7f00:1", "ipv4-compatible"],
    ["::8.8.8.8", "ipv4-compatible"],
    ["64:ff9b::127.0.0.1", "nat64"],
    ["64:ff9b::8.8.8.8", "nat64"],
    ["64:ff9b:1::10.0.0.1", "nat64"],
    ["2002:7f00:1::", "6to4"],
    ["2002:a9fe:a9fe::1", "6to4"],
    ["2001:0:7f00:1::", "teredo"],
    ["fe80::1%eth0", "link-local"],
  ])("denies the IPv4 address hidden in %s by rule %s", (ip, rule) => {
    expect(decideAddress(ip, STRICT)).toEqual({ result: "deny", rule });
  });

  it.each([
    "",
    "localhost",
    "256.0.0.1",
    "1.1.1.1.1",
    "127.1",
    "0x7f000001",
    "2130706433",
    "[::1]",
    "1::2::3",
    "①.0.0.1",
  ])("denies %j, which is not an address", (ip) =>
    expect(decideAddress(ip, STRICT)).toEqual({ result: "deny", rule: "not-an-address" }),
  );

  it.each(["127.0.0.1", "127.255.255.255", "::1", "::ffff:127.0.0.1"])("allows %s only by allowLoopback", (ip) => {
    expect(decideAddress(ip, { allowLoopback: true, allowPrivateNetwork: false }).result).toBe("allow");
    expect(decideAddress(ip, { allowLoopback: false, allowPrivateNetwork: true }).result).toBe("deny");
  });

  it.each(["10.0.0.1", "172.16.0.1", "192.168.1.1", "100.64.0.1", "fc00::1", "fd12::1", "::ffff:10.0.0.1"])(
    "allows %s only by allowPrivateNetwork",
    (ip) => {
      expect(decideAddress(ip, { allowLoopback: false, allowPrivateNetwork: true }).result).toBe("allow");
      expect(decideAddress(ip, { allowLoopback: true, allowPrivateNetwork: false }).result).toBe("deny");
    },
  );

  it.each([
    "169.254.169.254",
    "fe80::1",
    "0.0.0.0",
    "::",
    "224.0.0.1",
    "ff02::1",
    "255.255.255.255",
    "::10.0.0.1",
    "64:ff9b::10.0.0.1",
    "2002:a00:1::",
    "100.100.100.200",
    "fd00:ec2::254",
    "::ffff:8.8.8.8",
    "::ffff:169.254.169.254",
  ])("never allows %s", (ip) => {
    expect(decideAddress(ip, { allowLoopback: true, allowPrivateNetwork: true }).result).toBe("deny");
  });
});
