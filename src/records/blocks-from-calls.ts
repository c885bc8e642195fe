import { type CallBlock, type CallRow, createCallBlock } from "./call-block.js";

/**
 * Puts calls of any applications into blocks, in order. Pure. Blocks are to be written list by list: in each, every
 * block is of another application.
 *
 * @param maxBlock most calls of one block.
 */
export function blocksFromCalls(calls: readonly CallRow[], maxBlock: number): CallBlock[][] {
  const lists: CallBlock[][] = [];
  for (const [applicationId, own] of groupedByApplication(calls)) {
    for (let from = 0; from < own.length; from += maxBlock) {
      const at = from / maxBlock;
      lists[at] ??= [];
      lists[at].push(createCallBlock(applicationId, own.slice(from, from + maxBlock)));
    }
  }
  return lists;
}

function groupedByApplication(calls: readonly CallRow[]): Map<string, CallRow[]> {
  const groups = new Map<string, CallRow[]>();
  for (const call of calls) {
    const group = groups.get(call.applicationId);
    if (group === undefined) groups.set(call.applicationId, [call]);
    else group.push(call);
  }
  return groups;
}
