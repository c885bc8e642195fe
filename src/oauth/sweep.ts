import { watchClock } from "../lib/process.js";
import { createSingleFlight } from "../lib/turns.js";
import type { CommitOutcome, Connection, ConnectionStore } from "./connection.js";
import type { Peers, Settlement, UnstoredAnswer } from "./peers.js";
import type { Refresher } from "./refresher.js";

/** What the sweep needs. */
interface SweepOptions {
  readonly connections: Pick<ConnectionStore, "findAbandoned" | "freeLeases">;
  readonly peers: readonly Peers[];
  readonly refresher: Pick<Refresher, "refreshBeside" | "storeLeft">;
  /** Called for each answer that a dead process left, with what became of it. */
  readonly onReplayed: (connection: UnstoredAnswer["connection"], outcome: CommitOutcome) => void;
  readonly onFault: (error: unknown) => void;
}

/** Takes over the work that dead processes left. */
export type Sweep = ReturnType<typeof startSweep>;

/** Sweep interval: others take over from a dead process well within a provider's grace window of 30 s. Milliseconds. */
const EVERY_MS = 2000;
/** Connections refreshed per sweep: a process that ended had no more in flight to one provider. */
const BATCH = 50;

/**
 * Takes over from processes that are gone, even when nobody calls: stores the answers that they could not store, ends
 * their leases, and refreshes what they were refreshing. That must be soon, since the provider may accept the same
 * refresh token again only for a while (threats 3.4). Every process sweeps; locks and leases let only one act.
 */
export function startSweep(options: SweepOptions) {
  const { connections, peers, refresher, onReplayed, onFault } = options;
  const settlement: Settlement = {
    store: async (answer) => onReplayed(answer.connection, await refresher.storeLeft(answer)),
    free: connections.freeLeases,
  };
  let afterId = "";

  const refreshAbandoned = async () => {
    const found = await connections.findAbandoned(afterId, BATCH);
    // Connections that cannot be refreshed stay, so the next sweep starts after these.
    afterId = found.length < BATCH ? "" : (found.at(-1)?.id ?? "");
    for (const connection of found) refresher.refreshBeside(connection, "abandoned");
  };
  const settling = createSingleFlight(async () => {
    for (const each of peers) await each.settleGone(settlement).catch(onFault);
  });
  const looking = createSingleFlight(async () => {
    await settling.run();
    await refreshAbandoned().catch(onFault);
  });
  const timer = setInterval(() => void looking.run(), EVERY_MS).unref();
  return {
    /** Stores the answers that dead processes left, and ends their leases; refreshes nothing. Never rejects. */
    settle: settling.run,
    /** Runs one sweep, as the timer does; never rejects. */
    look: looking.run,
    /** Stops the timer; resolves when the last sweep has ended. */
    async close() {
      clearInterval(timer);
      await looking.current;
    },
  };
}

/** What the expiry sweep needs. */
interface ExpirySweepOptions {
  readonly connections: Pick<ConnectionStore, "findExpired" | "requireReauthorization">;
  /** Milliseconds since the epoch. */
  readonly now: () => number;
  /** Called for each connection that was ended. */
  readonly onEnded: (connection: Connection) => void;
  readonly onFault: (error: unknown) => void;
}

/** Sweep interval, in milliseconds: an application need not know sooner, and a sweep reads one place of an index. */
const LOOK_FOR_EXPIRED_EVERY_MS = 10_000;
/** Connections ended per sweep: after an upgrade from an older version, webhooks are spread over time. */
const EXPIRED_AT_ONCE = 50;
/** How long after its token a connection ends, in milliseconds. */
const MARGIN_MS = 5 * 60_000;

/**
 * Ends connections whose access token has expired and that have no refresh token, so that their applications are
 * notified, once, that the user must connect again, even when nobody calls. Every process sweeps; the first to write
 * notifies.
 *
 * An ended connection cannot be restored, so the clock must be right: minutes past the expiry, and steady (threats 3.7).
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
