import { bytesFromAddress } from "../lib/address-list.js";

/** Exceptions from the addresses that are refused by default. */
export interface AddressPolicy {
  /** 127.0.0.0/8 and ::1: development and tests. */
  readonly allowLoopback: boolean;
  /** RFC 1918, RFC 6598 and unique local addresses: self-hosted providers. Never loopback, link-local or metadata. */
  readonly allowPrivateNetwork: boolean;
}

/** A decision and the rule that made it; `public` when no rule matches the address. */
export interface AddressDecision {
  readonly result: "allow" | "deny";
  readonly rule: string;
}

/** Decides whether an address may be dialled, by its bytes, so that its spelling does not matter (threats N05, N08). */
export function decideAddress(ip: string, policy: AddressPolicy): AddressDecision {
  const bytes = bytesFromAddress(ip);
  if (bytes === undefined) return { result: "deny", rule: "not-an-address" };
  const rule = ruleOf(bytes);
  return { result: isAllowed(rule, policy) ? "allow" : "deny", rule };
}

function isAllowed(rule: string, policy: AddressPolicy): boolean {
  if (rule === "loopback") return policy.allowLoopback;
  if (rule === "private") return policy.allowPrivateNetwork;
  return rule === "public";
}

function ruleOf(bytes: Uint8Array): string {
  const rule = RANGES.find((range) => contains(range, bytes))?.rule ?? "public";
  if (rule !== "ipv4-mapped") return rule;
  // ::ffff:a.b.c.d is dialled as a.b.c.d. It counts as that where a policy must allow it; no honest host has others.
  const embedded = ruleOf(bytes.subarray(12));
  return embedded === "loopback" || embedded === "private" ? embedded : rule;
}

interface Range {
  readonly network: Uint8Array;
  readonly prefix: number;
  readonly rule: string;
}

function contains({ network, prefix }: Range, bytes: Uint8Array): boolean {
  if (network.length !== bytes.length) return false;
  const whole = prefix >> 3;
  for (let at = 0; at < whole; at += 1) if (network[at] !== bytes[at]) return false;
  const shift = 8 - (prefix & 7);
  return shift === 8 || ((network[whole] ?? 0) ^ (bytes[whole] ?? 0)) >> shift === 0;
}

/**
 * Addresses that are not public hosts; the first match wins. From the IANA special-purpose registries (RFC 6890 and
 * successors), the transition formats that embed an IPv4 address, and cloud metadata services outside those ranges.
 */
const RANGES: readonly Range[] = [
  ...ranges("metadata", "100.100.100.200/32", "168.63.129.16/32", "fd00:ec2::254/128", "fd20:ce::254/128"),
  ...ranges("unspecified", "0.0.0.0/8", "::/128"),
  ...ranges("loopback", "127.0.0.0/8", "::1/128"),
  ...ranges("private", "10.0.0.0/8", "100.64.0.0/10", "172.16.0.0/12", "192.168.0.0/16", "fc00::/7"),
  ...ranges("link-local", "169.254.0.0/16", "fe80::/10"),
  ...ranges("site-local", "fec0::/10"),
  ...ranges("multicast", "224.0.0.0/4", "ff00::/8"),
  ...ranges("broadcast", "255.255.255.255/32"),
  ...ranges("teredo", "2001::/32"),
  ...ranges("reserved", "192.0.0.0/24", "240.0.0.0/4", "100::/64", "100:0:0:1::/64", "2001::/23", "5f00::/16"),
  ...ranges("documentation", "192.0.2.0/24", "198.51.100.0/24", "203.0.113.0/24", "2001:db8::/32", "3fff::/20"),
  ...ranges("benchmarking", "198.18.0.0/15"),
  ...ranges("ipv4-mapped", "::ffff:0:0/96"),
  ...ranges("ipv4-compatible", "::/96"),
  ...ranges("nat64", "64:ff9b::/96", "64:ff9b:1::/48"),
  ...ranges("6to4", "192.88.99.0/24", "2002::/16"),
];

function ranges(rule: string, ...cidrs: string[]): Range[] {
  return cidrs.map((cidr) => {
    const [address = "", prefix] = cidr.split("/");
    return { network: bytesFromAddress(address) as Uint8Array, prefix: Number(prefix), rule };
  });
}
