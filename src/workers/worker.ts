import cluster from "node:cluster";
import { isStop, type ServiceUrls, type StartedMessage } from "./messages.js";
import { tellPulse } from "./pulse.js";

/** Tells the supervisor that this worker serves, and from then on that it is alive. */
export function tellStarted({ url, adminUrl }: ServiceUrls): void {
  const message: StartedMessage = { type: "started", url, adminUrl };
  process.send?.(message);
  tellPulse();
}

/**
 * Resolves when this worker is to end: to how long connections that rest are kept, in milliseconds. The supervisor says
 * so, or it is gone, or somebody sent SIGTERM to this process alone. Ctrl-C, and the end of a terminal, reach the whole
 * group of processes, and the supervisor acts on them.
 */
export function stopOrder(): Promise<number> {
  // Node.js would end this process at once when the supervisor is gone, in the middle of a renewal.
  if (cluster.worker !== undefined) cluster.worker.exitedAfterDisconnect = true;
  return new Promise((resolve) => {
    process.on("message", (message) => {
      if (isStop(message)) resolve(message.quietMs);
    });
    process.once("disconnect", () => resolve(0));
    process.on("SIGTERM", () => resolve(0));
    process.on("SIGINT", () => {});
    process.on("SIGHUP", () => {});
  });
}

/** The channel to the supervisor would keep the process alive. */
export function leave(): void {
  if (process.connected) process.disconnect();
}
