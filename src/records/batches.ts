import type { CallBlock } from "./call-block.js";

/** Written in one transaction: some milliseconds of the event loop, and of the write lock. */
const MAX_CALLS = 500;
/** And, where calls have long paths, this much text, in UTF-16 code units. */
const MAX_LENGTH = 128 * 1024;

/** Puts blocks together that are to be written at once. Pure. In each batch, every block is of another application. */
export function* batchesOf(blocksOfEach: ReadonlyArray<readonly CallBlock[]>): Generator<CallBlock[], void, undefined> {
  const rounds = blocksOfEach.reduce((most, { length }) => Math.max(most, length), 0);
  for (let round = 0; round < rounds; round += 1) {
    yield* cut(blocksOfEach.flatMap((blocks) => blocks[round] ?? []));
  }
}

function* cut(blocks: readonly CallBlock[]): Generator<CallBlock[], void, undefined> {
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
  yield batch;
}
