import type { CallStore } from "./call-store.js";
import { readBlocks } from "./read-blocks.js";
import type { StoredCall } from "./stored-call.js";
import { Watcher } from "./watcher.js";

/** Tells of calls as they end. */
export interface CallWatch {
  /**
   * Begins to watch; undefined when too many do. To be ended by `close()`. What ends from now on comes, in order, of all
   * relays that share the store.
   *
   * @param whose name of the operator who watches: nobody takes all places.
   */
  open(whose: string, isWanted: (call: StoredCall) => boolean): Promise<Watcher | undefined>;
}

/** What watching needs. */
export interface CallWatchOptions {
  readonly calls: Pick<CallStore, "lastSequence" | "listAfter">;
  /** Hears once that the store cannot be read, until it can be again. */
  readonly onFault: (error: unknown) => void;
}

/** With the half second that calls wait to be written, well within a second; under load they wait longer. Milliseconds. */
const EVERY_MS = 250;
/** Read at a time: one to ten megabytes. */
const BLOCKS = 8;
/** Open consoles and scripts of a few operators. */
const MAX_WATCHERS = 20;
const MAX_OF_ONE = 10;

/** Looks for new blocks, once for all watchers, and only while there are some. */
export function createCallWatch(options: CallWatchOptions): CallWatch {
  return new Watch(options);
}

class Watch implements CallWatch {
  readonly #options: CallWatchOptions;
  /** With the name of the operator who watches. */
  readonly #watchers = new Map<Watcher, string>();
  #lastSeen = 0;
  #timer: NodeJS.Timeout | undefined;
  #isFailing = false;

  constructor(options: CallWatchOptions) {
    this.#options = options;
  }

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
      for await (const [block, calls] of readBlocks(blocks)) {
        for (const watcher of this.#watchers.keys()) watcher.push(calls);
        this.#lastSeen = block.sequence;
      }
      if (blocks.length < BLOCKS || this.#watchers.size === 0) return;
    }
  }
}
