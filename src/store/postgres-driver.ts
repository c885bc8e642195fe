import { type Cache, type CacheOptions, type Database, nothing, type Operation, type Query } from "./database.js";
import { createLookupCache, type LookupCache } from "./lookup-cache.js";
import type { Queries, Session } from "./postgres-session.js";

/** Runs operations in PostgreSQL. */
export interface PostgresDatabase extends Database {
  /** Ends the background reading of its caches. */
  close(): void;
}

/** @param now the clock of this process, milliseconds since the epoch. */
export function createPostgresDatabase(session: Session, now: () => number = Date.now): PostgresDatabase {
  const caches: Array<Pick<LookupCache<unknown>, "forgetAll" | "close">> = [];
  const forgetAll = () => {
    for (const cache of caches) cache.forgetAll();
  };
  const read = <T>(operation: () => Operation<T>) => session.read((queries) => complete(operation(), queries));
  return {
    now,
    read,
    async write(operation, forget = forgetAll) {
      try {
        return await session.write((queries) => complete(operation(), queries));
      } finally {
        // Whatever becomes of a change, what was read before it is not given out after it.
        forget();
      }
    },
    createCache<Value extends { readonly id: string }>({ findByIds }: CacheOptions<Value>): Cache<Value> {
      const cache = createLookupCache<Value>({ findByIds: (ids) => read(() => findByIds(ids)) });
      caches.push(cache);
      return {
        find: (_key, find) => read(find),
        lookUp: (key, find) => cache.find(key, () => read(find)),
        forget: cache.forget,
        // None of them is kept.
        forgetFound: nothing,
      };
    },
    close() {
      for (const cache of caches) cache.close();
    },
  };
}

async function complete<T>(operation: Operation<T>, queries: Queries): Promise<T> {
  let step = operation.next();
  while (!step.done) {
    let value: unknown;
    try {
      value = await answerFrom(queries, step.value);
    } catch (error) {
      step = operation.throw(error);
      continue;
    }
    step = operation.next(value);
  }
  return step.value;
}

function answerFrom(queries: Queries, { kind, statement, parameters }: Query): Promise<unknown> {
  return queries[kind](statement, parameters as never);
}
