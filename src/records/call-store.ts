import type { CallBlock } from "./call-block.js";

/** A block as it is kept. */
export interface StoredBlock extends CallBlock {
  /** Grows with every block, in the order in which they can be seen: behind one that was seen, none is missed. */
  readonly sequence: number;
}

/** Which blocks to read. */
export interface BlockFilter {
  /** Undefined for all applications. */
  readonly applicationId: string | undefined;
  /**
   * Blocks that may have calls which came in then, milliseconds since the epoch: from `startAt`, before `endAt`. Of a bounded
   * number of blocks; where that ends, its last one comes as well, whatever it has.
   */
  readonly startAt?: number | undefined;
  readonly endAt?: number | undefined;
  /** Only older blocks; undefined for the newest. */
  readonly beforeSequence: number | undefined;
  /** At most so many. */
  readonly limit: number;
}

/**
 * Keeps the last calls of each application: a ring of blocks. Writing one block for many calls takes a fraction of what
 * a row for each would, and nothing has to be indexed but blocks.
 *
 * Every operation rejects with RelayError STORE_UNAVAILABLE when the store cannot be used.
 */
export interface CallStore {
  /**
   * Writes blocks, all or none, and deletes the oldest ones of their applications beyond `maxCalls` calls, some at a time.
   * Blocks of an application that does not exist any more are left out. Resolves to how many calls were written.
   */
  append(blocks: readonly CallBlock[], maxCalls: number): Promise<number>;
  /** Blocks from the newest to the oldest. */
  list(filter: BlockFilter): Promise<StoredBlock[]>;
  /** Blocks behind a sequence, in order; at most `limit`. */
  listAfter(sequence: number, limit: number): Promise<StoredBlock[]>;
  /** The newest block's sequence; 0 when there was never one. */
  lastSequence(): Promise<number>;
  /** The block that holds a call, which began at `startedAt`; undefined when there is none. */
  findBlock(callId: string, startedAt: number): Promise<StoredBlock | undefined>;
  /** Deletes blocks all of whose calls began before a time; at most `limit`. Resolves to how many. */
  deleteBefore(time: number, limit: number): Promise<number>;
}
