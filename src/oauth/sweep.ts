import type { Sealer } from "../sealing/seal.js";
import type { Connection, ConnectionStore, Lease } from "./connection.js";
import { openToken } from "./open-token.js";
import type { Peers, UnstoredAnswer } from "./peers.js";
import type { Renewer } from "./renewer.js";
import { keepLateAnswer } from "./until-stored.js";

/** What looking after what other processes left needs. */
interface SweepOptions {
  readonly connections: Pick<
    ConnectionStore,
    "findAbandoned" | "freeLeases" | "commitRenewal" | "keepPreviousRefreshToken" | "find"
  >;
  readonly peers: readonly Peers[];
  readonly sealer: Sealer;
  readonly renewer: Pick<Renewer, "renew">;
  /** Milliseconds since the epoch. */
  readonly now: () => number;
  /** Called for each answer of a process that is gone which the store has now; false: it had newer tokens. */
  readonly onReplayed: (connection: UnstoredAnswer["connection"], isNewest: boolean) => void;
  readonly onFault: (error: unknown) => void;
}

/** Looks after what other processes left. */
export interface Sweep {
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
  const { connections, peers, renewer, onFault } = options;
  let afterId = "";
  let looking: Promise<void> | undefined;

  const refreshAbandoned = async () => {
    const found = await connections.findAbandoned(afterId, BATCH);
    // What cannot be refreshed stays, so the next look begins behind it.
    afterId = found.length < BATCH ? "" : (found.at(-1)?.id ?? "");
    // How each ends is for the log, and the renewer has told it.
    for (const connection of found) renewer.renew(connection).catch(() => {});
  };
  const sweep = async () => {
    for (const each of peers) {
      await each.settleGone((owner, answers) => settle(options, owner, answers)).catch(onFault);
    }
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
    look,
    async close() {
      clearInterval(timer);
      await looking;
    },
  };
}

async function settle(options: SweepOptions, owner: string, answers: readonly UnstoredAnswer[]): Promise<void> {
  for (const answer of answers) await replay(options, owner, answer);
  // Only now: until then nobody may send a refresh token whose successor is here.
  await options.connections.freeLeases(owner);
}

async function replay(options: SweepOptions, owner: string, { connection, tokens }: UnstoredAnswer): Promise<void> {
  const { connections, sealer, now, onReplayed } = options;
  // Of the rest of the row nothing is asked.
  const lease: Lease = { connection: connection as Connection, owner, previousRefreshToken: undefined };
  const isNewest = await connections.commitRenewal(lease, tokens, now());
  onReplayed(connection, isNewest);
  if (isNewest || tokens.refreshToken === undefined) return;
  const refreshToken = openToken(sealer, connection, "refresh_token", tokens.refreshToken);
  const persistence = { pause: async () => {}, mustGiveUp: () => true, onRefused: () => {} };
  await keepLateAnswer({ connections, sealer, persistence }, lease, refreshToken);
}
