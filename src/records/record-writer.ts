import { setImmediate as nextTurn } from "node:timers/promises";
import type { Digests } from "../sealing/seal.js";
import { blocksFrom, type CallBlock, type CallStore, type EndedCall, USER_PURPOSE, userText } from "./call-block.js";
import { within } from "./list-calls.js";

/** Calls written in one transaction: holds the event loop and the write lock for some milliseconds. */
const MAX_CALLS = 500;
/** Text written in one transaction, in UTF-16 code units: the lower limit when paths are long. */
const MAX_LENGTH = 128 * 1024;

/**
 * Groups blocks into batches, one per transaction. Each block is built only when its batch is requested. The blocks of
 * a batch belong to different applications.
 *
 * @param blocksOfEach the blocks of each application, in order.
 */
function* batchesOf(blocksOfEach: Iterable<Iterator<CallBlock, void>>): Generator<CallBlock[], void, undefined> {
  for (let left = [...blocksOfEach]; left.length > 0; ) {
    const goingOn: Array<Iterator<CallBlock, void>> = [];
    yield* cut(nextOfEach(left, goingOn));
    left = goingOn;
  }
}

function* nextOfEach(each: ReadonlyArray<Iterator<CallBlock, void>>, goingOn: Array<Iterator<CallBlock, void>>) {
  for (const blocks of each) {
    const { value } = blocks.next();
    if (value === undefined) continue;
    goingOn.push(blocks);
    yield value;
  }
}

function* cut(blocks: Iterable<CallBlock>): Generator<CallBlock[], void, undefined> {
  let batch: CallBlock[] = [];
  let count = 0;
  let length = 0;
  for (const block of blocks) {
    count += block.count;
    length += block.calls.length;
    if (batch.length > 0 && (count > MAX_CALLS || length > MAX_LENGTH)) {
      yield batch;
      batch = [];
      count = block.count;
      length = block.calls.length;
    }
    batch.push(block);
  }
  if (batch.length > 0) yield batch;
}

/** Options of {@link RecordWriter}. */
interface RecordWriterOptions {
  readonly calls: Pick<CallStore, "append">;
  /** Digests user ids. */
  readonly sealer: Pick<Digests, "digest">;
  /** Most calls kept per application. */
  readonly maxCalls: number;
  /** Called with the number of dropped calls and the last error behind it: immediately, then once a minute. */
  readonly onDropped: (count: number, cause: unknown) => void;
}

/** Longest wait of a call before it is written. */
const MAX_WAIT_MS = 500;
/**
 * With more calls than this in that time, they wait longer: at ten thousand a second most have been overwritten in the
 * ring by then, and are never written.
 */
const MANY = 500;
const MAX_BUSY_WAIT_MS = 2000;
/** Size of the queue: usually forty thousand calls. From half full, it is written without waiting. */
const MAX_BYTES = 16 * 1024 * 1024;
/** Estimated size of a queued call, without its path, query keys, user id and request id. */
const CALL_BYTES = 400;
/** A block is deleted as a whole, so it holds at most a tenth of its application's ring. */
const BLOCKS_OF_RING = 10;
const REPORT_MS = 60_000;
const CLOSE_MS = 2000;

/** Queued calls of one application: a ring buffer of `maxCalls`, since the store would delete any more at once. */
interface Waiting {
  readonly calls: EndedCall[];
  /** Index of the oldest call: moves once the buffer is full. */
  first: number;
  bytes: number;
}

/**
 * Collects calls and writes them in batches, one batch at a time. No call waits for it: when the store is too slow or
 * unavailable, records are dropped and counted.
 */
export class RecordWriter {
  /** Calls dropped since the start. */
  dropped = 0;
  readonly #options: RecordWriterOptions;
  /** Most calls in one block: fits in one transaction, and keeps small what a reader must scan to find one call. */
  readonly #maxBlock: number;
  /** By application. */
  #waiting = new Map<string, Waiting>();
  /** Size of the queued calls and of those being written. */
  #bytes = 0;
  /** Calls taken from the queue but not yet written. */
  #unwritten = 0;
  #isClosed = false;
  #timer: NodeJS.Timeout | undefined;
  #writing: Promise<void> | undefined;
  #unreported = 0;
  #cause: unknown;
  #reportTimer: NodeJS.Timeout | undefined;

  constructor(options: RecordWriterOptions) {
    this.#options = options;
    this.#maxBlock = Math.max(1, Math.min(MAX_CALLS, Math.floor(options.maxCalls / BLOCKS_OF_RING)));
  }

  /** Queues a call, in a microsecond; drops it when the queue is full. Never throws. */
  add(call: EndedCall): void {
    const before = this.#bytes;
    if (before >= MAX_BYTES) {
      this.#drop(1);
      return;
    }
    const waiting = this.#waiting.get(call.applicationId) ?? this.#begin(call.applicationId);
    const place = waiting.calls.length < this.#options.maxCalls ? waiting.calls.length : waiting.first;
    const given = waiting.calls[place];
    waiting.calls[place] = call;
    if (given !== undefined) waiting.first = (place + 1) % waiting.calls.length;
    const bytes = bytesOf(call) - (given === undefined ? 0 : bytesOf(given));
    waiting.bytes += bytes;
    this.#bytes += bytes;
    if (before < MAX_BYTES / 2 && this.#bytes >= MAX_BYTES / 2) this.#arm(0, this.#write);
    else this.#timer ??= setTimeout(this.#due, MAX_WAIT_MS).unref();
  }

  /** Writes the queued calls for at most two seconds, then drops the rest. */
  async close(): Promise<void> {
    clearTimeout(this.#timer);
    // A write in progress does not include calls that arrived after it began.
    const written = (async () => {
      await this.#writing;
      await this.#write();
    })();
    await within(written, CLOSE_MS);
    this.#isClosed = true;
    this.#drop(this.#count() + this.#unwritten);
    this.#waiting.clear();
    clearTimeout(this.#reportTimer);
    this.#report();
  }

  #begin(applicationId: string): Waiting {
    const waiting = { calls: [], first: 0, bytes: 0 };
    this.#waiting.set(applicationId, waiting);
    return waiting;
  }

  #count(): number {
    let count = 0;
    for (const { calls } of this.#waiting.values()) count += calls.length;
    return count;
  }

  #arm(afterMs: number, then: () => unknown): void {
    clearTimeout(this.#timer);
    this.#timer = setTimeout(then, afterMs).unref();
  }

  readonly #due = (): void => {
    if (this.#count() > MANY) this.#arm(MAX_BUSY_WAIT_MS - MAX_WAIT_MS, this.#write);
    else void this.#write();
  };

  readonly #write = (): Promise<void> => {
    this.#writing ??= this.#writeAll().finally(() => {
      this.#writing = undefined;
      this.#timer = undefined;
      if (this.#waiting.size === 0) return;
      if (this.#bytes >= MAX_BYTES / 2) this.#arm(0, this.#write);
      else this.#arm(MAX_WAIT_MS, this.#due);
    });
    return this.#writing;
  };

  /** Writes the calls queued now; others may arrive meanwhile. */
  async #writeAll(): Promise<void> {
    const waiting = [...this.#waiting];
    this.#unwritten = this.#count();
    this.#waiting = new Map();
    const limits = { maxCalls: this.#maxBlock, maxLength: MAX_LENGTH };
    const blocks = waiting.map(([applicationId, each]) =>
      blocksFrom(applicationId, inOrder(each), this.#digestsOf(applicationId), limits),
    );
    for (const batch of batchesOf(blocks)) {
      this.#unwritten -= countOf(batch);
      await this.#writeBatch(batch);
      await nextTurn();
      if (this.#isClosed) break;
    }
    for (const [, { bytes }] of waiting) this.#bytes -= bytes;
  }

  /** Digests user ids only as calls are written, since under load most never are, and once per user. */
  #digestsOf(applicationId: string): (userId: string) => string {
    const { sealer } = this.#options;
    const known = new Map<string, string>();
    return (userId) => {
      const digest = known.get(userId) ?? sealer.digest(USER_PURPOSE, userText(applicationId, userId));
      known.set(userId, digest);
      return digest;
    };
  }

  async #writeBatch(blocks: readonly CallBlock[]): Promise<void> {
    try {
      await this.#options.calls.append(blocks, this.#options.maxCalls);
    } catch (error) {
      this.#cause = error;
      this.#drop(countOf(blocks));
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

function inOrder({ calls, first }: Waiting): readonly EndedCall[] {
  return first === 0 ? calls : [...calls.slice(first), ...calls.slice(0, first)];
}

function bytesOf({ path = "", queryKeys, userId = "", requestId = "" }: EndedCall): number {
  const own = CALL_BYTES + path.length + userId.length + requestId.length;
  return queryKeys.reduce((sum, { length }) => sum + length, own);
}

function countOf(blocks: readonly CallBlock[]): number {
  return blocks.reduce((sum, { count }) => sum + count, 0);
}
