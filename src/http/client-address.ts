import { plainAddress } from "./client-network.js";
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
