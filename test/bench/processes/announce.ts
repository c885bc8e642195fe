import type { AddressInfo } from "node:net";

/** Tells the process that started this one the port that a server listens on. */
export function announce(address: AddressInfo | string | null): void {
  if (address === null || typeof address === "string") throw new Error("not listening on a port");
  process.send?.({ port: address.port });
}
