import type { Revocation } from "../authorization/disconnect.js";
import type { Config } from "../config.js";
import type { ConnectionKey } from "../tokens/connection.js";
import type { SelfAddress } from "../upstream/dial.js";
import { loadCatalog } from "./environment.js";
import type { OpenStore } from "./open-store.js";

/**
 * Ends a connection as the API does, with a way to the provider of its own that is closed afterwards. Undefined when
 * there was none. Rejects with RelayError STORE_UNAVAILABLE.
 */
export async function disconnectConnection(
  { config, store, sealer }: OpenStore,
  key: ConnectionKey,
): Promise<Revocation | undefined> {
  const [{ disconnect }, { createTokenEndpoint }, { createUpstream }] = await Promise.all([
    import("../authorization/disconnect.js"),
    import("../authorization/token-endpoint.js"),
    import("../upstream/client.js"),
  ]);
  const { connectTimeoutMs, maxResponseBytes, upstreamReuse: reuse, allowLoopback } = config;
  const selfAddresses = () => selfAddressesFrom(config);
  const upstream = createUpstream({ connectTimeoutMs, maxResponseBytes, reuse, allowLoopback, selfAddresses });
  try {
    return await disconnect(
      {
        catalog: await loadCatalog(config),
        connections: store.connections,
        oauthClients: store.oauthClients,
        sealer,
        send: createTokenEndpoint(upstream),
        now: Date.now,
        // What became of it is what this command prints.
        onEvent: () => {},
        onFault: () => {},
      },
      key,
    );
  } finally {
    await upstream.close();
  }
}

/** Where the service listens, if it runs. */
function selfAddressesFrom({ listen, adminListen }: Config): readonly SelfAddress[] {
  const ports = adminListen === "off" ? [listen] : [listen, adminListen];
  return ports.map(({ host, port }) => ({ address: host, port }));
}
