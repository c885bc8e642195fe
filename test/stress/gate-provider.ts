import type { Socket } from "node:net";
import { answer, startRawProvider } from "../support/raw-provider.js";

/** A provider that holds every answer until it is told to let all go. */
export interface GateProvider {
  readonly origin: string;
  /** Requests that wait now. */
  waiting(): number;
  /** Sockets of the relay that are open now. */
  open(): number;
  /** Answers what waits. What comes afterwards waits again. */
  letGo(): void;
  close(): Promise<void>;
}

/**
 * Starts one.
 *
 * @param bodyBytes size of each answer; all but its last byte is sent at once.
 */
export async function startGateProvider(bodyBytes: number): Promise<GateProvider> {
  const whole = answer("x".repeat(bodyBytes), "Content-Type: text/plain");
  const waiting = new Set<Socket>();
  const provider = await startRawProvider((socket) => {
    waiting.add(socket);
    socket.write(whole.subarray(0, -1));
  });
  return {
    origin: provider.origin,
    waiting: () => [...waiting].filter(({ destroyed }) => !destroyed).length,
    open: () => provider.open.size,
    letGo() {
      for (const socket of waiting) socket.write(whole.subarray(-1));
      waiting.clear();
    },
    close: () => provider.close(),
  };
}
