import { setImmediate as nextTurn } from "node:timers/promises";
import { callsFromBlock } from "./call-block.js";
import type { StoredBlock } from "./call-store.js";
import type { StoredCall } from "./stored-call.js";

/** Characters that are read before others have their turn: some milliseconds. */
const MAX_CHARACTERS = 256 * 1024;

/**
 * Reads the calls of blocks one after the other. Callers decide how long a path and how many parameters a record has, and
 * with them how large a block is: a hundred kilobytes as a rule, two megabytes at most.
 */
export async function* readBlocks(
  blocks: readonly StoredBlock[],
): AsyncGenerator<readonly [StoredBlock, readonly StoredCall[]], void, undefined> {
  let characters = 0;
  for (const block of blocks) {
    characters += block.calls.length;
    if (characters > MAX_CHARACTERS) {
      characters = block.calls.length;
      await nextTurn();
    }
    yield [block, callsFromBlock(block)];
  }
}
