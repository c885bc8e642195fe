// What a hosts file and a forwarded port do: TLS connections of this process end at servers on 127.0.0.1. The name still
// goes out in the handshake, and the certificate is judged by it.
import { syncBuiltinESMExports } from "node:module";
import tls from "node:tls";

const connect = tls.connect;

/**
 * @param {(host: string) => number} portOf The port on 127.0.0.1 where connections to a host end.
 * @param {string} [ca] PEM certificate to trust; what the process trusts unless given.
 */
export function divert(portOf, ca) {
  tls.connect = (options, ...rest) => {
    const { host, servername } = options;
    const there = { host: "127.0.0.1", port: portOf(host), servername: servername || host, lookup: undefined };
    return connect({ ...options, ...there, ...(ca && { ca }) }, ...rest);
  };
  syncBuiltinESMExports();
}

// Loaded in front of the relay's own process.
const { STAND_IN_PORT } = process.env;
if (STAND_IN_PORT !== undefined) divert(() => Number(STAND_IN_PORT));
