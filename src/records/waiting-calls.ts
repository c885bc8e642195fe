import { BlockBuilder } from "./block-builder.js";
import type { CallBlock } from "./call-block.js";
import type { StoredCall } from "./stored-call.js";

/** How calls are put into blocks. */
export interface WaitingOptions {
  readonly applicationId: string;
  /** Most calls that are kept of the application. */
  readonly maxCalls: number;
  /** Most calls of one block. */
  readonly maxBlock: number;
}

/** A block is full when its text is longer, whatever its calls: a millisecond or two to write. UTF-16 code units. */
const MAX_LENGTH = 128 * 1024;

/**
 * The last calls of an application, while they wait to be written: no more than its ring holds. Where more come, the
 * first ones give way, since they would be deleted in the same moment in which they are written.
 */
export class WaitingCalls {
  /** UTF-16 code units of all that waits. */
  length = 0;
  readonly #options: WaitingOptions;
  readonly #full: CallBlock[] = [];
  #fullCount = 0;
  #open: BlockBuilder | undefined;

  constructor(options: WaitingOptions) {
    this.#options = options;
  }

  get count(): number {
    return this.#fullCount + (this.#open?.count ?? 0);
  }

  add(call: StoredCall): void {
    this.#open ??= new BlockBuilder(this.#options.applicationId, call.startedAt);
    const before = this.#open.length;
    this.#open.add(call);
    this.length += this.#open.length - before;
    if (this.#open.count >= this.#options.maxBlock || this.#open.length > MAX_LENGTH) this.#close(this.#open);
  }

  /** All that waits, in order. */
  take(): CallBlock[] {
    if (this.#open !== undefined) this.#close(this.#open);
    this.#fullCount = 0;
    this.length = 0;
    return this.#full.splice(0);
  }

  #close(open: BlockBuilder): void {
    const block = open.build();
    this.#open = undefined;
    this.#full.push(block);
    this.#fullCount += block.count;
    this.length += block.calls.length - open.length;
    while (this.#fullCount > this.#options.maxCalls) this.#forgetFirst();
  }

  #forgetFirst(): void {
    const first = this.#full.shift() as CallBlock;
    this.#fullCount -= first.count;
    this.length -= first.calls.length;
  }
}
