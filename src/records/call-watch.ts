import type { CallStore, StoredCall } from "./call-block.js";
import { type OnUnreadable, readBlocks } from "./list-calls.js";

/** Calls that have ended since the last `take()`, in order. */
interface SeenCalls {
  readonly calls: readonly StoredCall[];
  /** How many calls before these were dropped because the watcher was too slow. */
  readonly skipped: number;
}

/** Most calls queued for one watcher: some hundred kilobytes. */
const MAX_WAITING = 1000;

/** The queue of one watcher. When it is full, the oldest calls are dropped and counted. */
class Watcher {
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

  /** Resolves as soon as there are calls, or with none after `timeoutMs`. Undefined when the watcher is closed. */
  async take(timeoutMs: number): Promise<SeenCalls | undefined> {
    if (this.#waiting.length === 0 && !this.#isClosed) await this.#woken(timeoutMs);
    if (this.#isClosed) return undefined;
    const taken = { calls: this.#waiting, skipped: this.#skipped };
    this.#waiting = [];
    this.#skipped = 0;
    return taken;
  }

  /** Closes the watcher; a pending `take()` resolves at once. */
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

/** Options of {@link CallWatch}. */
interface CallWatchOptions {
  readonly calls: Pick<CallStore, "lastSequence" | "listAfter">;
  /** Called when reading the store fails; not again until a read has succeeded. */
  readonly onFault: (error: unknown) => void;
  readonly onUnreadable: OnUnreadable;
}

/**
 * Together with the half second that calls wait to be written, well within a second; longer under load. Milliseconds.
 */
const EVERY_MS = 250;
/** Blocks read at a time: one to ten megabytes. */
const BLOCKS = 8;
/** Enough for the open consoles and scripts of a few operators. */
const MAX_WATCHERS = 20;
const MAX_OF_ONE = 10;

/**
 * A live feed of finished calls. Polls for new blocks, once for all watchers, and only while there are watchers.
 */
export class CallWatch {
  readonly #options: CallWatchOptions;
  /** Each watcher, with its operator's name. */
  readonly #watchers = new Map<Watcher, string>();
  #lastSeen = 0;
  #timer: NodeJS.Timeout | undefined;
  #isFailing = false;

  constructor(options: CallWatchOptions) {
    this.#options = options;
  }

  /**
   * Opens a watcher; undefined when there are too many. The caller must `close()` it. It receives calls that end from
   * now on, in order, from all relays that share the store.
   *
   * @param whose name of the operator. One operator may open 10 of the 20 watchers.
   */
  async open(whose: string, isWanted: (call: StoredCall) => boolean): Promise<Watcher | undefined> {
    const own = [...this.#watchers.values()].filter((each) => each === whose).length;
    if (this.#watchers.size >= MAX_WATCHERS || own >= MAX_OF_ONE) return undefined;
    const watcher = new Watcher(isWanted, () => this.#watchers.delete(watcher));
    this.#watchers.set(watcher, whose);
    try {
      if (this.#timer === undefined) await this.#begin();
      return watcher;
    } catch (error) {
      watcher.close();
      throw error;
    }
  }

  async #begin(): Promise<void> {
    const last = await this.#options.calls.lastSequence();
    if (this.#timer !== undefined) return;
    this.#lastSeen = last;
    this.#arm();
  }

  #arm(): void {
    this.#timer = setTimeout(() => void this.#look(), EVERY_MS).unref();
  }

  async #look(): Promise<void> {
    try {
      await this.#readNew();
      this.#isFailing = false;
    } catch (error) {
      if (!this.#isFailing) this.#options.onFault(error);
      this.#isFailing = true;
    }
    if (this.#watchers.size > 0) this.#arm();
    else this.#timer = undefined;
  }

  async #readNew(): Promise<void> {
    for (;;) {
      const blocks = await this.#options.calls.listAfter(this.#lastSeen, BLOCKS);
      for await (const [block, calls] of readBlocks(blocks, this.#options.onUnreadable)) {
        for (const watcher of this.#watchers.keys()) watcher.push(calls);
        this.#lastSeen = block.sequence;
      }
      if (blocks.length < BLOCKS || this.#watchers.size === 0) return;
    }
  }
}
