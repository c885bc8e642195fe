import type { CommitOutcome, Connection, ConnectionStore } from "./connection.js";
import type { Peers, Settlement, UnstoredAnswer } from "./peers.js";
import type { Refresher } from "./refresher.js";

/** What looking after what other processes left needs. */
interface SweepOptions {
  readonly connections: Pick<ConnectionStore, "findAbandoned" | "freeLeases">;
  readonly peers: readonly Peers[];
  readonly refresher: Pick<Refresher, "refreshBeside" | "storeLeft">;
  /** Called for each answer of a process that is gone, with what became of it. */
  readonly onReplayed: (connection: UnstoredAnswer["connection"], outcome: CommitOutcome) => void;
  readonly onFault: (error: unknown) => void;
}

/** Looks after what other processes left. */
export interface Sweep {
  /** Stores what was left, and ends the leases of those that left it; refreshes nothing. Never rejects. */
  settle(): Promise<void>;
  /** One look, as the timer begins them; never rejects. */
  look(): Promise<void>;
  /** Begins no more looks; resolves when the last one has ended. */
  close(): Promise<void>;
}

/** A process that is gone is followed by the next owner well within the 30 s of a provider's grace window. Milliseconds. */
const EVERY_MS = 2000;
/** Refreshed at a time: a process that ended had no more on their way to one provider. */
const BATCH = 50;

/**
 * Takes over from processes that are gone, also when nobody calls: stores the answers that they could not store, ends
 * their leases, and refreshes what they were refreshing: the provider may take the same refresh token again only for a
 * while (threats 3.4). Every process looks; locks and leases let one act.
 */
export function startSweep(options: SweepOptions): Sweep {
  const { connections, peers, refresher, onReplayed, onFault } = options;
  const settlement: Settlement = {
    store: async (answer) => onReplayed(answer.connection, await refresher.storeLeft(answer)),
    free: connections.freeLeases,
  };
  let afterId = "";
  let looking: Promise<void> | undefined;

  const refreshAbandoned = async () => {
    const found = await connections.findAbandoned(afterId, BATCH);
    // What cannot be refreshed stays, so the next look begins behind it.
    afterId = found.length < BATCH ? "" : (found.at(-1)?.id ?? "");
    for (const connection of found) refresher.refreshBeside(connection, "abandoned");
  };
  const settle = async () => {
    for (const each of peers) await each.settleGone(settlement).catch(onFault);
  };
  const sweep = async () => {
    await settle();
    await refreshAbandoned().catch(onFault);
  };
  const look = () => {
    looking ??= sweep().finally(() => {
      looking = undefined;
    });
    return looking;
  };
  const timer = setInterval(() => void look(), EVERY_MS).unref();
  return {
    settle,
    look,
    async close() {
      clearInterval(timer);
      await looking;
    },
  };
}

/** What ending connections that ended with their token needs. */
interface ExpirySweepOptions {
  readonly connections: Pick<ConnectionStore, "findExpired" | "requireReauthorization">;
  /** Milliseconds since the epoch. */
  readonly now: () => number;
  /** Called for each connection that was ended. */
  readonly onEnded: (connection: Connection) => void;
  readonly onFault: (error: unknown) => void;
}

/** How often is looked, in milliseconds: an application need not know sooner, and a look reads one place of an index. */
const LOOK_FOR_EXPIRED_EVERY_MS = 10_000;
/** Ended at a time: those of a store that was brought here by an older version are told over time, not at once. */
const EXPIRED_AT_ONCE = 50;
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
    for (const connection of await connections.findExpired(at - MARGIN_MS, EXPIRED_AT_ONCE)) {
      if (await connections.requireReauthorization(connection, "expired", at)) onEnded(connection);
    }
  };
  const timer = setInterval(() => void sweep().catch(onFault), LOOK_FOR_EXPIRED_EVERY_MS).unref();
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
