import { setTimeout as delay } from "node:timers/promises";
import { RelayError } from "../errors.js";

/** A store that is locked or full may take the tokens a moment later. Milliseconds between tries. */
const STORE_AGAIN_MS = 500;
/** Longer than a database takes to be restarted, or to be replaced by its standby. In milliseconds. */
const STORE_FOR_MS = 120_000;

/** Tries a write again while the store cannot be used; for what exists nowhere else. Rejects as the last try did. */
export async function untilStored<T>(write: () => Promise<T>): Promise<T> {
  for (const until = performance.now() + STORE_FOR_MS; ; ) {
    try {
      return await write();
    } catch (error) {
      const isUnavailable = error instanceof RelayError && error.reason === "STORE_UNAVAILABLE";
      if (!isUnavailable || performance.now() > until) throw error;
    }
    await delay(STORE_AGAIN_MS);
  }
}
