import type { Config } from "../config/config.js";
import type { DisconnectOptions } from "../oauth/disconnect.js";
import type { SelfAddress } from "../upstream/dial.js";
import { loadCatalog, type OpenStore } from "./open-store.js";

/** Gives `use` what ending a connection needs, with a way to providers of its own that is closed afterwards. */
export async function withWayOut<Result>(
  { config, store, sealer }: OpenStore,
  use: (options: DisconnectOptions) => Promise<Result>,
): Promise<Result> {
  const [{ createTokenEndpoint }, { createUpstream }] = await Promise.all([
    import("../oauth/token-endpoint.js"),
    import("../upstream/client.js"),
  ]);
  const { connectTimeoutMs, maxResponseBytes, upstreamReuse: reuse, upstreamQuietMs: quietMs, allowLoopback } = config;
  const selfAddresses = () => selfAddressesFrom(config);
  const upstream = createUpstream({ connectTimeoutMs, maxResponseBytes, reuse, quietMs, allowLoopback, selfAddresses });
  try {
    return await use({
      catalog: await loadCatalog(config),
      connections: store.connections,
      oauthClients: store.oauthClients,
      sealer,
      send: createTokenEndpoint(upstream),
      now: Date.now,
      // What became of it is what the command prints.
      onEvent: () => {},
      onFault: () => {},
    });
  } finally {
    await upstream.close();
  }
}

/** Where the service listens, if it runs. */
function selfAddressesFrom({ listen, adminListen }: Config): readonly SelfAddress[] {
  const ports = adminListen === "off" ? [listen] : [listen, adminListen];
  return ports.map(({ host, port }) => ({ address: host, port }));
}
