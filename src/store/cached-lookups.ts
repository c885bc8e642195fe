import type { Application, ApplicationStore } from "../applications/application.js";
import type { Connection, ConnectionKey, ConnectionStore } from "../oauth/connection.js";
import { createLookupCache, type LookupCache, type LookupCacheOptions } from "./lookup-cache.js";

/** Applications whose look-up is kept for a moment. */
export function cachedApplications(applications: ApplicationStore & LookupCacheOptions<Application>) {
  const cache = createLookupCache(applications);
  const changed = <T>(publicKey: string, change: () => Promise<T>) => forgetting(cache, publicKey, change);
  return {
    store: {
      ...applications,
      update: (publicKey, patch, now, options) =>
        changed(publicKey, () => applications.update(publicKey, patch, now, options)),
      delete: (publicKey, options) => changed(publicKey, () => applications.delete(publicKey, options)),
    } satisfies ApplicationStore,
    lookup: {
      findByPublicKey: (publicKey: string) => cache.find(publicKey, () => applications.findByPublicKey(publicKey)),
    },
    close: cache.close,
  };
}

/** Connections whose look-up is kept for a moment. Only `lookup` may be late: renewals read `connections`. */
export function cachedConnections(connections: ConnectionStore & LookupCacheOptions<Connection>) {
  const cache = createLookupCache(connections);
  const changed = <T>(key: ConnectionKey, change: () => Promise<T>) => forgetting(cache, textOf(key), change);
  return {
    store: {
      ...connections,
      put: (connection, now, audit) => changed(connection, () => connections.put(connection, now, audit)),
      delete: (key, now, audit) => changed(key, () => connections.delete(key, now, audit)),
      commitRenewal: (connection, tokens, now) =>
        changed(connection, () => connections.commitRenewal(connection, tokens, now)),
      recordFailure: (lease, failure, now) =>
        changed(lease.connection, () => connections.recordFailure(lease, failure, now)),
      noteTrouble: (connection, trouble) => changed(connection, () => connections.noteTrouble(connection, trouble)),
      requireReauthorization: (connection, reason, now, options) =>
        changed(connection, () => connections.requireReauthorization(connection, reason, now, options)),
    } satisfies ConnectionStore,
    lookup: { find: (key: ConnectionKey) => cache.find(textOf(key), () => connections.find(key)) },
    close: cache.close,
  };
}

/** Whatever becomes of a change, what was read before it is not given out after it. */
async function forgetting<T>(
  cache: Pick<LookupCache<unknown>, "forget">,
  key: string,
  change: () => Promise<T>,
): Promise<T> {
  try {
    return await change();
  } finally {
    cache.forget(key);
  }
}

/** Lengths tell the parts apart, whatever characters an id has. */
function textOf({ applicationId, userId, providerName }: ConnectionKey): string {
  return `${applicationId.length} ${providerName.length} ${applicationId}${providerName}${userId}`;
}
