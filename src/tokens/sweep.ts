import type { ConnectionStore } from "./connection.js";
import type { Renewer } from "./renewer.js";

/** What looking after abandoned renewals needs. */
export interface SweepOptions {
  readonly connections: Pick<ConnectionStore, "findAbandoned">;
  readonly renewer: Pick<Renewer, "renew">;
  readonly onFault: (error: unknown) => void;
}

/** The next owner must come within the 30 s of a provider's grace window, after a lease of 5 s. Milliseconds. */
const EVERY_MS = 5000;
/** Renewed at a time: a process that ended had no more on their way to one provider. */
const BATCH = 50;

/**
 * Renews what a process that is gone was renewing, also when nobody calls: its answer may be lost, and the provider may
 * take the same refresh token again only for a while (threats 3.4). Every process looks; the lease lets one act.
 */
export function startSweep({ connections, renewer, onFault }: SweepOptions): { close(): void } {
  let afterId = "";
  const sweep = async () => {
    const found = await connections.findAbandoned(afterId, BATCH);
    // What cannot be renewed stays, so the next look begins behind it.
    afterId = found.length < BATCH ? "" : (found.at(-1)?.id ?? "");
    // How each ends is for the log, and the renewer has told it.
    for (const connection of found) renewer.renew(connection).catch(() => {});
  };
  const timer = setInterval(() => void sweep().catch(onFault), EVERY_MS).unref();
  return { close: () => clearInterval(timer) };
}
