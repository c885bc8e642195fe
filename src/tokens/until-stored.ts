import { setTimeout as delay } from "node:timers/promises";
import { RelayError } from "../errors.js";

/** A store that is locked or full may take the tokens a moment later. Milliseconds between tries, and how many. */
const STORE_AGAIN_MS = 500;
const STORE_TRIES = 20;

/** Tries a write again while the store cannot be used; for what exists nowhere else. Rejects as the last try did. */
export async function untilStored<T>(write: () => Promise<T>): Promise<T> {
  for (let tries = 1; ; tries += 1) {
    try {
      return await write();
    } catch (error) {
      if (tries === STORE_TRIES || !(error instanceof RelayError && error.reason === "STORE_UNAVAILABLE")) throw error;
    }
    await delay(STORE_AGAIN_MS);
  }
}
