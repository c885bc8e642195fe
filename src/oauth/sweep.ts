import type { CommitOutcome, ConnectionStore } from "./connection.js";
import type { Peers, Settlement, UnstoredAnswer } from "./peers.js";
import type { Refresher } from "./refresher.js";

/** What looking after what other processes left needs. */
interface SweepOptions {
  readonly connections: Pick<ConnectionStore, "findAbandoned" | "freeLeases">;
  readonly peers: readonly Peers[];
  readonly refresher: Pick<Refresher, "refresh" | "storeLeft">;
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
    // How each ends is for the log, and the refresher has told it.
    for (const connection of found) refresher.refresh(connection).catch(() => {});
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
