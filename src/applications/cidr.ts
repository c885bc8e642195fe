import { isIP } from "node:net";
import { parseCidrList } from "../lib/address-list.js";
import type { Parsed } from "./parsed.js";

/**
 * Reads a network of client addresses that may call: `192.0.2.0/24`, `2001:db8::/32`, or one address. An address
 * inside a network, such as `192.0.2.7/8`, is refused: it is a slip that would let in more than was meant.
 */
export function parseCidr(text: string): Parsed {
  if (/[,\s%]/.test(text) || parseCidrList(text)?.length !== 1) {
    return { problem: "must be an address or a network, such as 192.0.2.7, 192.0.2.0/24 or 2001:db8::/32" };
  }
  const [address = "", prefix] = text.split("/");
  if (prefix === undefined || isNetwork(address, Number(prefix))) return { value: text };
  return { problem: `has address bits behind its /${prefix}: write the network's first address, or the address alone` };
}

function isNetwork(address: string, prefix: number): boolean {
  const bits = isIP(address) === 4 ? bitsOfIPv4(address) : bitsOfIPv6(address);
  return !bits.slice(prefix).includes("1");
}

function bitsOfIPv4(address: string): string {
  return address
    .split(".")
    .map((byte) => bitsOf(Number(byte), 8))
    .join("");
}

/** The URL parser spells every IPv6 address as hexadecimal groups with at most one `::`. */
function bitsOfIPv6(address: string): string {
  const [head = "", tail] = new URL(`http://[${address}]`).hostname.slice(1, -1).split("::");
  const groups = (part: string | undefined) => (part ? part.split(":") : []);
  const missing = new Array<string>(8 - groups(head).length - groups(tail).length).fill("0");
  return [...groups(head), ...missing, ...groups(tail)].map((group) => bitsOf(Number.parseInt(group, 16), 16)).join("");
}

function bitsOf(value: number, width: number): string {
  return value.toString(2).padStart(width, "0");
}
