import { createServer, type RequestListener } from "node:http";
import { createServer as createSecureServer } from "node:https";
import type { AddressInfo } from "node:net";

/** As nginx keeps them: longer than any subject keeps its own. */
const KEEP_ALIVE_MS = 75_000;

/** Serves on a free port and announces it; over TLS 1.3 alone where the environment has a certificate (`TLS`, JSON). */
export function serve(listener: RequestListener): void {
  const { TLS } = process.env;
  const server =
    TLS === undefined
      ? createServer(listener)
      : createSecureServer({ ...JSON.parse(TLS), minVersion: "TLSv1.3" }, listener);
  server.keepAliveTimeout = KEEP_ALIVE_MS;
  server.listen(0, "127.0.0.1", () => announce(server.address()));
}

/** Tells the process that started this one the port that a server listens on. */
export function announce(address: AddressInfo | string | null): void {
  if (address === null || typeof address === "string") throw new Error("not listening on a port");
  process.send?.({ port: address.port });
}
