import { BlockList, isIP } from "node:net";

/** Parses CIDRs separated by commas; a bare address is a network of one. Undefined when any of them is malformed. */
export function parseCidrList(text: string): string[] | undefined {
  const entries = text
    .split(",")
    .map((entry) => entry.trim())
    .filter(Boolean);
  return entries.every((entry) => subnetFrom(entry) !== undefined) ? entries : undefined;
}

/** Matches addresses against CIDRs; an IPv4-mapped IPv6 address counts as its IPv4 address. */
export function createAddressMatcher(cidrs: readonly string[]): (address: string) => boolean {
  const list = new BlockList();
  for (const cidr of cidrs) {
    const subnet = subnetFrom(cidr);
    if (subnet === undefined) throw new TypeError(`not a CIDR: ${cidr}`);
    list.addSubnet(subnet.network, subnet.prefix, subnet.family);
  }
  return (address) => {
    const version = isIP(address);
    return version !== 0 && list.check(address, version === 4 ? "ipv4" : "ipv6");
  };
}

/** Whether a listening host is reachable only from this machine. */
export function isLoopbackHost(host: string): boolean {
  return host === "localhost" || host === "::1" || (isIP(host) === 4 && host.startsWith("127."));
}

/**
 * Parses an IPv4 address (4 bytes) or IPv6 address (16 bytes, without its zone) in any spelling that `net.isIP`
 * accepts; undefined for other text. IPv4-mapped addresses stay 16 bytes.
 */
export function bytesFromAddress(ip: string): Uint8Array | undefined {
  const text = ip.split("%", 1)[0] as string;
  const version = isIP(text);
  if (version === 4) return Uint8Array.from(text.split("."), Number);
  return version === 6 ? bytesFromIPv6(text) : undefined;
}

/** Parses text that is known to be an IPv6 address: hexadecimal groups, at most one `::`, possibly a dotted tail. */
function bytesFromIPv6(text: string): Uint8Array {
  const [head = "", tail] = text.split("::", 2);
  const front = bytesFromGroups(head);
  const back = tail === undefined ? [] : bytesFromGroups(tail);
  return Uint8Array.from([...front, ...new Array<number>(16 - front.length - back.length).fill(0), ...back]);
}

function bytesFromGroups(text: string): number[] {
  if (text === "") return [];
  return text.split(":").flatMap((group) => {
    if (group.includes(".")) return group.split(".").map(Number);
    const value = Number.parseInt(group, 16);
    return [value >> 8, value & 0xff];
  });
}

function subnetFrom(text: string): { network: string; prefix: number; family: "ipv4" | "ipv6" } | undefined {
  const [network = "", suffix, ...rest] = text.split("/");
  const version = isIP(network);
  const bits = version === 4 ? 32 : 128;
  const prefix = suffix === undefined ? bits : prefixFrom(suffix, bits);
  if (version === 0 || prefix === undefined || rest.length > 0) return undefined;
  return { network, prefix, family: version === 4 ? "ipv4" : "ipv6" };
}

function prefixFrom(text: string, bits: number): number | undefined {
  return /^\d{1,3}$/.test(text) && Number(text) <= bits ? Number(text) : undefined;
}
