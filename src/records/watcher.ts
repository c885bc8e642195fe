import type { StoredCall } from "./stored-call.js";

/** Calls that have ended since the last time, in order. */
export interface SeenCalls {
  readonly calls: readonly StoredCall[];
  /** How many were left out before them, because more came than were taken. */
  readonly skipped: number;
}

/** Waiting to be taken: some hundred kilobytes. */
const MAX_WAITING = 1000;

/** Somebody who watches calls; who takes them too slowly misses some. */
export class Watcher {
  readonly #isWanted: (call: StoredCall) => boolean;
  readonly #onClosed: () => void;
  #waiting: StoredCall[] = [];
  #skipped = 0;
  #isClosed = false;
  #wake: (() => void) | undefined;

  constructor(isWanted: (call: StoredCall) => boolean, onClosed: () => void) {
    this.#isWanted = isWanted;
    this.#onClosed = onClosed;
  }

  push(calls: readonly StoredCall[]): void {
    for (const call of calls) if (this.#isWanted(call)) this.#waiting.push(call);
    const excess = this.#waiting.length - MAX_WAITING;
    if (excess > 0) {
      this.#waiting.splice(0, excess);
      this.#skipped += excess;
    }
    if (this.#waiting.length > 0) this.#wake?.();
  }

  /** Resolves when calls have ended, or after `timeoutMs` without one: with none. Undefined when it is closed. */
  async take(timeoutMs: number): Promise<SeenCalls | undefined> {
    if (this.#waiting.length === 0 && !this.#isClosed) await this.#woken(timeoutMs);
    if (this.#isClosed) return undefined;
    const taken = { calls: this.#waiting, skipped: this.#skipped };
    this.#waiting = [];
    this.#skipped = 0;
    return taken;
  }

  /** Ends it, also in the middle of `take()`. */
  close(): void {
    this.#isClosed = true;
    this.#onClosed();
    this.#wake?.();
  }

  #woken(timeoutMs: number): Promise<void> {
    return new Promise((resolve) => {
      const timer = setTimeout(() => this.#wake?.(), timeoutMs);
      this.#wake = () => {
        clearTimeout(timer);
        this.#wake = undefined;
        resolve();
      };
    });
  }
}
