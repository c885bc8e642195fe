import { networkInterfaces } from "node:os";
import { type AddressDecision, bytesFromAddress, decideAddress } from "./address.js";

/** An address and port that the relay itself listens on. */
export interface SelfAddress {
  readonly address: string;
  readonly port: number;
}

/** What is the same for every dial of the process. */
export interface DialPolicy {
  readonly allowLoopback: boolean;
  readonly selfAddresses: () => readonly SelfAddress[];
}

/** Where one pool dials to. */
export interface Target {
  /** `https:` or `http:`. */
  readonly protocol: string;
  readonly port: number;
  readonly allowPrivateNetwork: boolean;
}

/** Decides whether an address may be dialled for a target: by its range, by the scheme, and never the relay itself. */
export function decideDial(address: string, policy: DialPolicy, target: Target): AddressDecision {
  const decision = decideAddress(address, {
    allowLoopback: policy.allowLoopback,
    allowPrivateNetwork: target.allowPrivateNetwork,
  });
  if (decision.result === "deny") return decision;
  // A token leaves in the clear only where nobody else can listen.
  if (target.protocol !== "https:" && decision.rule !== "loopback") return { result: "deny", rule: "cleartext" };
  return isSelf(address, target.port, policy.selfAddresses()) ? { result: "deny", rule: "self" } : decision;
}

/** Whether a dial would reach a listener of this process (threats N15). */
function isSelf(address: string, port: number, listeners: readonly SelfAddress[]): boolean {
  const key = addressKey(address);
  return listeners.some((listener) => {
    if (listener.port !== port) return false;
    const own = addressKey(listener.address);
    return own === key || (isUnspecified(own) && isOwnInterface(key));
  });
}

/** A listener on 0.0.0.0 or :: hears every address of the machine. */
function isOwnInterface(key: string): boolean {
  if (key.startsWith("127.") || key === addressKey("::1")) return true;
  return Object.values(networkInterfaces()).some((list) => list?.some(({ address }) => addressKey(address) === key));
}

function isUnspecified(key: string): boolean {
  return /^[0.]+$/.test(key);
}

/** One text for every spelling of an address; an IPv4-mapped one counts as its IPv4 address. */
function addressKey(address: string): string {
  const bytes = bytesFromAddress(address) ?? new Uint8Array();
  const text = bytes.join(".");
  return text.startsWith(MAPPED) ? text.slice(MAPPED.length) : text;
}

const MAPPED = "0.0.0.0.0.0.0.0.0.0.255.255.";
