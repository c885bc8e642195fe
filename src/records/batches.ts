import type { CallBlock } from "./call-block.js";

/** Written in one transaction: some milliseconds of the event loop, and of the write lock. */
export const MAX_CALLS = 500;
/** And, where calls have long paths, this much text, in UTF-16 code units. */
export const MAX_LENGTH = 128 * 1024;

/**
 * Puts blocks together that are to be written at once; each is asked for when its batch is. In a batch, every block is of
 * another application.
 *
 * @param blocksOfEach the blocks of each application, in order.
 */
export function* batchesOf(blocksOfEach: Iterable<Iterator<CallBlock, void>>): Generator<CallBlock[], void, undefined> {
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
