import type { Socket } from "node:net";
import { clientNetworkOf, plainAddress } from "./client-network.js";

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
