import { isDeepStrictEqual } from "node:util";
import type { Application, ApplicationStore } from "../applications/application.js";
import type { Connection, ConnectionKey, ConnectionStore } from "../tokens/connection.js";

/** How late a change of another process may be seen, in milliseconds: after a disconnect, calls end within that. */
const MAX_STALE_MS = 1000;
/** Of each kind; a connection with its sealed tokens takes some kilobytes. */
const MAX_ENTRIES = 5000;

/** Values that were read a moment ago. */
export interface LookupCache<Value> {
  /**
   * The value of this key as it was at most a second ago, or what `read` finds. Whoever asks while it is being read
   * gets the same answer; that there is none is not kept. A value that has not changed is the same object again, so that
   * whoever keeps something with it, such as an opened token, need not make that again.
   */
  find(key: string, read: () => Promise<Value | undefined>): Promise<Value | undefined>;
  /** This process has changed it, or is about to: what is being read now is not kept either. */
  forget(key: string): void;
}

/** @param now milliseconds of a clock that never goes back. */
export function createLookupCache<Value>(now: () => number = () => performance.now()): LookupCache<Value> {
  const entries = new Map<string, Entry<Value>>();
  return {
    find(key, read) {
      const kept = entries.get(key);
      if (kept !== undefined && now() - kept.askedAt < MAX_STALE_MS) return kept.value;
      // Counted from before it was read: the answer is at least as new as that.
      const entry = new Entry(now(), kept?.known, read());
      const drop = () => void (entries.get(key) === entry && entries.delete(key));
      entry.value.then((value) => value === undefined && drop(), drop);
      entries.delete(key);
      entries.set(key, entry);
      const [oldest] = entries.keys();
      if (entries.size > MAX_ENTRIES && oldest !== undefined) entries.delete(oldest);
      return entry.value;
    },
    forget: (key) => void entries.delete(key),
  };
}

/** One reading of a value. */
class Entry<Value> {
  readonly askedAt: number;
  readonly value: Promise<Value | undefined>;
  /** What `value` was settled with, once it is. */
  known: Value | undefined;

  constructor(askedAt: number, before: Value | undefined, read: Promise<Value | undefined>) {
    this.askedAt = askedAt;
    this.value = read.then((value) => {
      this.known = isDeepStrictEqual(before, value) ? before : value;
      return this.known;
    });
  }
}

/** Applications whose look-up is kept for a moment. */
export function cachedApplications(applications: ApplicationStore, cache: LookupCache<Application>) {
  const changed = async <T>(publicKey: string, change: () => Promise<T>): Promise<T> => {
    try {
      return await change();
    } finally {
      cache.forget(publicKey);
    }
  };
  return {
    applications: {
      ...applications,
      update: (publicKey, patch, now, options) =>
        changed(publicKey, () => applications.update(publicKey, patch, now, options)),
      delete: (publicKey, options) => changed(publicKey, () => applications.delete(publicKey, options)),
    } satisfies ApplicationStore,
    lookup: {
      findByPublicKey: (publicKey: string) => cache.find(publicKey, () => applications.findByPublicKey(publicKey)),
    },
  };
}

/** Connections whose look-up is kept for a moment. Only `lookup` may be late: renewals read `connections`. */
export function cachedConnections(connections: ConnectionStore, cache: LookupCache<Connection>) {
  const changed = async <T>(key: ConnectionKey, change: () => Promise<T>): Promise<T> => {
    try {
      return await change();
    } finally {
      cache.forget(textOf(key));
    }
  };
  return {
    connections: {
      ...connections,
      put: (connection, now, audit) => changed(connection, () => connections.put(connection, now, audit)),
      delete: (key, now, audit) => changed(key, () => connections.delete(key, now, audit)),
      commitRenewal: (lease, tokens, now) =>
        changed(lease.connection, () => connections.commitRenewal(lease, tokens, now)),
      recordFailure: (lease, failure, now) =>
        changed(lease.connection, () => connections.recordFailure(lease, failure, now)),
      requireReauthorization: (connection, reason, now) =>
        changed(connection, () => connections.requireReauthorization(connection, reason, now)),
    } satisfies ConnectionStore,
    lookup: { find: (key: ConnectionKey) => cache.find(textOf(key), () => connections.find(key)) },
  };
}

/** Lengths tell the parts apart, whatever characters an id has. */
function textOf({ applicationId, userId, providerName }: ConnectionKey): string {
  return `${applicationId.length} ${providerName.length} ${applicationId}${providerName}${userId}`;
}
