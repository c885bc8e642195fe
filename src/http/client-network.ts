/** Groups of an IPv6 address, and how many of them name a client's network. */
const GROUPS = 8;
const NETWORK_GROUPS = 4;

/**
 * What counts as one client among addresses: an IPv4 address; of IPv6 the first 64 bits, since a client has all
 * addresses of such a network (RFC 4291 section 2.5.4). An IPv4-mapped address is its IPv4 address.
 *
 * @param address as Node.js writes it, without brackets.
 */
export function clientNetworkOf(address: string): string {
  const plain = plainAddress(address);
  if (!plain.includes(":")) return plain;
  const [start = "", end] = plain.split("::");
  const groups = start === "" ? [] : start.split(":");
  // "::" stands for as many zeros as are missing.
  if (end !== undefined) {
    const last = end === "" ? [] : end.split(":");
    groups.push(...Array<string>(Math.max(0, GROUPS - groups.length - last.length)).fill("0"), ...last);
  }
  return `${groups.slice(0, NETWORK_GROUPS).join(":")}::/64`;
}

/** An IPv4-mapped IPv6 address (RFC 4291 section 2.5.5.2) is its IPv4 address. */
export function plainAddress(address: string): string {
  return address.startsWith("::ffff:") && address.includes(".") ? address.slice("::ffff:".length) : address;
}
