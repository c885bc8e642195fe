import { isIPv6 } from "node:net";

/**
 * Who is counted as one visitor: an IPv4 address, or the first 64 bits of an IPv6 address, since one client has all
 * addresses behind them (RFC 4291 section 2.5.4). Pure.
 */
export function visitorFrom(address: string): string {
  if (!isIPv6(address)) return address;
  const [head = "", tail = ""] = address.split("::");
  const left = groupsOf(head);
  const right = groupsOf(tail);
  const zeros = Array.from({ length: Math.max(0, 8 - left.length - right.length) }, () => "0");
  const groups = [...left, ...zeros, ...right].slice(0, 4);
  return `${groups.map((group) => Number.parseInt(group, 16).toString(16)).join(":")}::/64`;
}

function groupsOf(text: string): readonly string[] {
  return text === "" ? [] : text.split(":");
}
