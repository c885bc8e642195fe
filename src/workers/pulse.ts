import type { Worker } from "node:cluster";
import { isPulse, type PulseMessage } from "./messages.js";

/** How often a worker says that its event loop turns, in milliseconds. */
const PULSE_MS = 3000;
/** The event loop is held for milliseconds at a time by design; one that is held for a quarter of a minute hangs. */
const MAX_MISSED = 5;

/** Tells the supervisor that the event loop of this worker turns, again and again. */
export function tellPulse(): void {
  const message: PulseMessage = { type: "pulse" };
  // A supervisor that is gone ends this worker in another way.
  const timer = setInterval(() => process.connected && process.send?.(message, () => {}), PULSE_MS);
  timer.unref();
}

/**
 * Calls `onSilent` once when a worker that serves was not heard of for too long. Missed pulses are counted, not time: a
 * machine that was suspended has not missed any.
 */
export function watchPulse(worker: Worker, onSilent: () => void): void {
  let missed = 0;
  worker.on("message", (message: unknown) => {
    if (isPulse(message)) missed = 0;
  });
  const timer = setInterval(() => {
    if (++missed < MAX_MISSED) return;
    clearInterval(timer);
    onSilent();
  }, PULSE_MS);
  timer.unref();
  worker.once("exit", () => clearInterval(timer));
}
