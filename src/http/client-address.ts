import type { Socket } from "node:net";
import type { HttpRequest } from "./exchange.js";

/**
 * The client's IP address: the peer's, or, when the peer is a trusted proxy, the right-most address of
 * X-Forwarded-For that no trusted proxy added. Empty when the socket is already gone.
 */
export function createClientAddress(isTrustedProxy: (address: string) => boolean): (request: HttpRequest) => string {
  return (request) => {
    const peer = plainAddress(request.socket.remoteAddress ?? "");
    const forwarded = request.headers["x-forwarded-for"];
    if (forwarded === undefined || !isTrustedProxy(peer)) return peer;
    const hops = String(forwarded)
      .split(",")
      .map((hop) => plainAddress(hop.trim()));
    return hops.findLast((hop) => !isTrustedProxy(hop)) ?? peer;
  };
}

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
function plainAddress(address: string): string {
  return address.startsWith("::ffff:") && address.includes(".") ? address.slice("::ffff:".length) : address;
}

/** How many connections each client has, so that one cannot take the places of all. */
export interface ClientPlaces {
  /** Takes a place for a new connection until it closes; false when its client has as many as it may. */
  take(socket: Socket): boolean;
  /** Connections that got no place since the start. */
  readonly refused: number;
}

/**
 * Counts connections by client, all of which are gone from here when they are closed.
 *
 * @param isExempt addresses that speak for many clients: trusted proxies.
 */
export function createClientPlaces(maxOfOne: number, isExempt: (address: string) => boolean): ClientPlaces {
  const taken = new Map<string, number>();
  let refused = 0;

  function free(client: string): void {
    const left = (taken.get(client) ?? 1) - 1;
    if (left === 0) taken.delete(client);
    else taken.set(client, left);
  }

  return {
    take(socket) {
      // Without an address it is gone already, and is closed as any other.
      const address = plainAddress(socket.remoteAddress ?? "");
      if (address === "" || isExempt(address)) return true;
      const client = clientNetworkOf(address);
      const count = taken.get(client) ?? 0;
      if (count >= maxOfOne) {
        refused += 1;
        return false;
      }
      taken.set(client, count + 1);
      socket.once("close", () => free(client));
      return true;
    },
    get refused() {
      return refused;
    },
  };
}
