/** Ranges that are not public hosts (threats N08). */
const IPV4_RANGES = [
  "0.0.0.0/8",
  "10.0.0.0/8",
  "100.64.0.0/10",
  "127.0.0.0/8",
  "169.254.0.0/16",
  "169.254.169.254/32",
  "172.16.0.0/12",
  "192.0.0.0/24",
  "192.0.2.0/24",
  "192.88.99.0/24",
  "192.168.0.0/16",
  "198.18.0.0/15",
  "198.51.100.0/24",
  "203.0.113.0/24",
  "224.0.0.0/4",
  "240.0.0.0/4",
  "255.255.255.255/32",
] as const;

/** The same for IPv6, each range as its first and last address. */
const IPV6_EDGES = [
  ["::", "::"],
  ["::1", "::1"],
  ["::ffff:0:0", "::ffff:ffff:ffff"],
  ["64:ff9b::", "64:ff9b::ffff:ffff"],
  ["64:ff9b:1::", "64:ff9b:1:ffff:ffff:ffff:ffff:ffff"],
  ["100::", "100::ffff:ffff:ffff:ffff"],
  ["2001::", "2001:0:ffff:ffff:ffff:ffff:ffff:ffff"],
  ["2001:db8::", "2001:db8:ffff:ffff:ffff:ffff:ffff:ffff"],
  ["2002::", "2002:ffff:ffff:ffff:ffff:ffff:ffff:ffff"],
  ["fc00::", "fdff:ffff:ffff:ffff:ffff:ffff:ffff:ffff"],
  ["fe80::", "febf:ffff:ffff:ffff:ffff:ffff:ffff:ffff"],
  ["fec0::", "feff:ffff:ffff:ffff:ffff:ffff:ffff:ffff"],
  ["ff00::", "ffff:ffff:ffff:ffff:ffff:ffff:ffff:ffff"],
] as const;

/** First and last address of each range, in the plain notation. */
export const SPECIAL_IPV4: readonly string[] = [...new Set(IPV4_RANGES.flatMap(edgesOf))];
export const SPECIAL_IPV6: readonly string[] = [...new Set(IPV6_EDGES.flat())];

/** Every way to write an IPv4 address as the host of a url that some parser understands. */
export function notationsOfIPv4(address: string): string[] {
  const octets = address.split(".").map(Number) as [number, number, number, number];
  const [a, b, c, d] = octets;
  const value = ((a << 24) | (b << 16) | (c << 8) | d) >>> 0;
  const tail = value & 0xff_ffff;
  const groups = `${(value >>> 16).toString(16)}:${(value & 0xffff).toString(16)}`;
  return [
    address,
    `${address}.`,
    octets.map((octet) => `0x${octet.toString(16)}`).join("."),
    octets.map((octet) => `0${octet.toString(8)}`).join("."),
    octets.map((octet) => String(octet).padStart(3, "0")).join("."),
    String(value),
    `0x${value.toString(16)}`,
    `0X${value.toString(16).toUpperCase()}.`,
    `0${value.toString(8)}`,
    `${a}.${tail}`,
    `0x${a.toString(16)}.${b}.${tail & 0xffff}`,
    `[::ffff:${address}]`,
    `[::ffff:${groups}]`,
    `[0:0:0:0:0:FFFF:${address}]`,
    `[::${address}]`,
    `[64:ff9b::${groups}]`,
    `[2002:${groups}::]`,
    address.replace(/\d/g, (digit) => String.fromCodePoint(0xff10 + Number(digit))),
    address.replace(/[1-9]/g, (digit) => String.fromCodePoint(0x245f + Number(digit))),
    address.replaceAll(".", "\u3002"),
    address.replaceAll(".", "\uff0e"),
    address.replaceAll(".", "%2e"),
    address.replace(/\d/g, (digit) => `%3${digit}`),
    `${address}.nip.io`,
  ];
}

/** The same for IPv6. */
export function notationsOfIPv6(address: string): string[] {
  return [
    `[${address}]`,
    `[${address.toUpperCase()}]`,
    `[${address}].`,
    `[${address}%25lo]`,
    `[${address}%lo]`,
    `%5B${address}%5D`,
    address,
  ];
}

function edgesOf(cidr: string): string[] {
  const [network = "", prefix] = cidr.split("/");
  const first = network.split(".").reduce((sum, octet) => sum * 256 + Number(octet), 0);
  const last = first + 2 ** (32 - Number(prefix)) - 1;
  return [first, last].map((value) => [24, 16, 8, 0].map((shift) => (value >>> shift) & 0xff).join("."));
}
