import { setImmediate as nextTurn } from "node:timers/promises";
import type { Digests } from "../sealing/seal.js";
import { blocksFrom, type CallBlock, type CallStore, type EndedCall, USER_PURPOSE, userText } from "./call-block.js";
import { within } from "./list-calls.js";

/** Written in one transaction: some milliseconds of the event loop, and of the write lock. */
const MAX_CALLS = 500;
/** And, where calls have long paths, this much text, in UTF-16 code units. */
const MAX_LENGTH = 128 * 1024;

/**
 * Puts blocks together that are to be written at once; each is asked for when its batch is. In a batch, every block is of
 * another application.
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

/** What writing needs. */
interface RecordWriterOptions {
  readonly calls: Pick<CallStore, "append">;
  /** Names users. */
  readonly sealer: Pick<Digests, "digest">;
  /** Most calls of each application that are kept. */
  readonly maxCalls: number;
  /** Called with the number of calls that were not recorded and the last error behind it, at once and then once a minute. */
  readonly onDropped: (count: number, cause: unknown) => void;
}

/** Records calls beside serving them. */
export interface RecordWriter {
  /** Takes a call in, in a microsecond; drops it when too many wait. Never throws. */
  add(call: EndedCall): void;
  /** Calls that were not recorded, since the start. */
  readonly dropped: number;
  /** Writes what waits, for at most two seconds; what is left then is dropped. */
  close(): Promise<void>;
}

/** A call waits no longer than this before it is written, in milliseconds. */
const MAX_WAIT_MS = 500;
/**
 * Where more calls than this come in that time, they wait longer: at ten thousand a second most of them have left the
 * ring again by then, and are never written.
 */
const MANY = 500;
const MAX_BUSY_WAIT_MS = 2000;
/** Of calls that wait: forty thousand as a rule. From the half on they wait no longer. */
const MAX_BYTES = 16 * 1024 * 1024;
/** Of a call that waits, beside its path and the keys of its query. */
const CALL_BYTES = 400;
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

/** The last calls of an application, while they wait: as many as its ring holds, since more would be deleted at once. */
interface Waiting {
  readonly calls: EndedCall[];
  /** Where the first one stands: behind the last one when more came than there is room for. */
  first: number;
  bytes: number;
}

class Writer implements RecordWriter {
  dropped = 0;
  readonly #options: RecordWriterOptions;
  /** No more than is written at once, and than a reader should have to go through for one call. */
  readonly #maxBlock: number;
  /** By application. */
  #waiting = new Map<string, Waiting>();
  /** Of what waits and of what is being written. */
  #bytes = 0;
  /** Calls that do not wait any more, and are not written yet. */
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

  async close(): Promise<void> {
    clearTimeout(this.#timer);
    // A write that began before may leave what came meanwhile.
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

  /** All that wait now; others come meanwhile. */
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

  /** Only what is written is digested, since most of many calls never are; and once for a user's calls. */
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
