import { setImmediate as nextTurn } from "node:timers/promises";
import { blocksFromCalls } from "./blocks-from-calls.js";
import { type CallRow, rowFromCall } from "./call-block.js";
import type { CallStore } from "./call-store.js";
import type { StoredCall } from "./stored-call.js";
import { within } from "./within.js";

/** What writing needs. */
export interface RecordWriterOptions {
  readonly calls: Pick<CallStore, "append">;
  /** Most calls of each application that are kept. */
  readonly maxCalls: number;
  /** Hears of calls that were not recorded, and of the last error behind it, at once and then once a minute. */
  readonly onDropped: (count: number, cause: unknown) => void;
}

/** Records calls beside serving them. */
export interface RecordWriter {
  /** Takes a call in, in a microsecond; drops it when too many wait. Never throws. */
  add(call: StoredCall): void;
  /** Calls that were not recorded, since the start. */
  readonly dropped: number;
  /** Writes what waits, for at most two seconds; what is left then is dropped. */
  close(): Promise<void>;
}

/** Written in one transaction: some milliseconds of the event loop, and of the write lock. */
const BATCH = 500;
/** A call waits no longer than this before it is written, in milliseconds. */
const MAX_WAIT_MS = 500;
/** Calls that wait: what comes in a second when a process has as much to do as it can; two megabytes. */
const MAX_WAITING = 5000;
/** A block goes as a whole, so it is no more than this part of its ring. */
const BLOCKS_OF_RING = 10;
const REPORT_MS = 60_000;
const CLOSE_MS = 2000;

/**
 * Collects calls and writes them in batches, one at a time. Nothing waits for it: where the store is slower than the
 * calls, or away, they are dropped and counted.
 */
export function createRecordWriter(options: RecordWriterOptions): RecordWriter {
  return new Writer(options);
}

class Writer implements RecordWriter {
  dropped = 0;
  readonly #options: RecordWriterOptions;
  readonly #maxBlock: number;
  #waiting: CallRow[] = [];
  #timer: NodeJS.Timeout | undefined;
  #writing: Promise<void> | undefined;
  #unreported = 0;
  #cause: unknown;
  #reportTimer: NodeJS.Timeout | undefined;

  constructor(options: RecordWriterOptions) {
    this.#options = options;
    this.#maxBlock = Math.max(1, Math.min(BATCH, Math.floor(options.maxCalls / BLOCKS_OF_RING)));
  }

  add(call: StoredCall): void {
    if (this.#waiting.length >= MAX_WAITING) {
      this.#drop(1);
      return;
    }
    this.#waiting.push(rowFromCall(call));
    if (this.#waiting.length === BATCH) this.#arm(0);
    else this.#timer ??= setTimeout(this.#write, MAX_WAIT_MS).unref();
  }

  async close(): Promise<void> {
    clearTimeout(this.#timer);
    // A write that began before may leave what came meanwhile.
    const written = (async () => {
      await this.#writing;
      await this.#write();
    })();
    await within(written, CLOSE_MS);
    this.#drop(this.#waiting.splice(0).length);
    clearTimeout(this.#reportTimer);
    this.#report();
  }

  #arm(afterMs: number): void {
    clearTimeout(this.#timer);
    this.#timer = setTimeout(this.#write, afterMs).unref();
  }

  readonly #write = (): Promise<void> => {
    this.#writing ??= this.#writeAll().finally(() => {
      this.#writing = undefined;
      this.#timer = undefined;
      if (this.#waiting.length > 0) this.#arm(this.#waiting.length < BATCH ? MAX_WAIT_MS : 0);
    });
    return this.#writing;
  };

  /** All that wait now; others come meanwhile. */
  async #writeAll(): Promise<void> {
    for (let left = this.#waiting.length; left > 0; left -= BATCH) {
      await this.#writeBatch(this.#waiting.splice(0, Math.min(left, BATCH)));
      await nextTurn();
    }
  }

  async #writeBatch(calls: readonly CallRow[]): Promise<void> {
    const { calls: store, maxCalls } = this.#options;
    let left = calls.length;
    try {
      for (const blocks of blocksFromCalls(calls, this.#maxBlock)) {
        await store.append(blocks, maxCalls);
        left -= blocks.reduce((sum, { count }) => sum + count, 0);
      }
    } catch (error) {
      this.#cause = error;
      this.#drop(left);
    }
  }

  #drop(count: number): void {
    if (count === 0) return;
    this.dropped += count;
    this.#unreported += count;
    if (this.#reportTimer === undefined) this.#report();
  }

  readonly #report = (): void => {
    this.#reportTimer = undefined;
    if (this.#unreported === 0) return;
    this.#options.onDropped(this.#unreported, this.#cause);
    this.#unreported = 0;
    this.#cause = undefined;
    this.#reportTimer = setTimeout(this.#report, REPORT_MS).unref();
  };
}
