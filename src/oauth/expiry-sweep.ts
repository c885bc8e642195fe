import type { Connection, ConnectionStore } from "./connection.js";

/** What ending connections that ended with their token needs. */
interface ExpirySweepOptions {
  readonly connections: Pick<ConnectionStore, "findExpired" | "requireReauthorization">;
  /** Milliseconds since the epoch. */
  readonly now: () => number;
  /** Hears of each connection that was ended. */
  readonly onEnded: (connection: Connection) => void;
  readonly onFault: (error: unknown) => void;
}

/** How often is looked, in milliseconds: an application need not know sooner, and a look reads one place of an index. */
const EVERY_MS = 10_000;
/** Ended at a time: those of a store that was brought here by an older version are told over time, not at once. */
const BATCH = 50;
/** How long a token has ended before its connection does, and how long the clock must have been steady. Milliseconds. */
const MARGIN_MS = 5 * 60_000;
/** A clock is set right by less without anybody noticing, in milliseconds. */
const MAX_DRIFT_MS = 5000;

/**
 * Ends connections whose access token has ended and that have no refresh token, so that their applications are told
 * that the user must connect again, once, also when nobody calls. Every process looks; the first one to write tells.
 *
 * What was ended does not come back, so the clock must be right: not only past the end by minutes, but steady for as
 * long beside one that never jumps (threats 3.7).
 */
export function startExpirySweep({ connections, now, onEnded, onFault }: ExpirySweepOptions): { close(): void } {
  const isSteady = watchClock(now);
  const sweep = async () => {
    if (!isSteady()) return;
    const at = now();
    for (const connection of await connections.findExpired(at - MARGIN_MS, BATCH)) {
      if (await connections.requireReauthorization(connection, "expired", at)) onEnded(connection);
    }
  };
  const timer = setInterval(() => void sweep().catch(onFault), EVERY_MS).unref();
  return { close: () => clearInterval(timer) };
}

/** To be asked at each look: whether the clock has gone as the monotonic one does, and for long enough. */
function watchClock(now: () => number): () => boolean {
  let offsetMs = now() - performance.now();
  let steadySince = performance.now();
  return () => {
    const monotonic = performance.now();
    const isJump = Math.abs(now() - monotonic - offsetMs) > MAX_DRIFT_MS;
    offsetMs = now() - monotonic;
    if (isJump) steadySince = monotonic;
    return monotonic - steadySince >= MARGIN_MS;
  };
}
