import { setImmediate as nextTurn } from "node:timers/promises";
import { timeOfCallId } from "../http/identity.js";
import { type CallStore, callsFromBlock, type StoredBlock, type StoredCall } from "./call-block.js";

/** Which calls to list. An undefined field matches every call. */
export interface CallFilter {
  readonly applicationId: string | undefined;
  /** All names of one provider, since a record has the one of its time. */
  readonly providers: readonly string[] | undefined;
  readonly errorType: string | undefined;
  /** Digests of one user; a record may hold any of them. */
  readonly users?: readonly string[] | undefined;
  /** The caller's own x-request-id. */
  readonly requestId?: string | undefined;
  /** Arrival time in milliseconds since the epoch: from `startAt` (inclusive) to `endAt` (exclusive). */
  readonly startAt?: number | undefined;
  readonly endAt?: number | undefined;
}

/** A cursor in the list, which runs from newest to oldest: the next page starts after this call of this block. */
export interface CallPosition {
  readonly sequence: number;
  readonly index: number;
}

/** One page of calls, and the cursor of the next. */
interface CallPage {
  readonly calls: readonly StoredCall[];
  /** Undefined when there are no more. */
  readonly next: CallPosition | undefined;
}

/** Called with a block that cannot be read and the error. Unless it throws, the block's calls are skipped. */
export type OnUnreadable = (block: StoredBlock, error: unknown) => void;

const rethrow: OnUnreadable = (_block, error) => {
  throw error;
};

/** Blocks read at a time: one to ten megabytes. */
const BLOCKS = 8;
/** Most calls scanned for one page, which may then be shorter than requested, or empty (AIP-158). */
const MAX_SCANNED = 20_000;
/** Cost of a call whose block is only searched for a text, relative to a scanned call. */
const SEARCHED = 0.1;
/** Cost of the blocks outside the time range that one query skips, in scanned calls. */
const PASSED = 50;

/** Lists up to `pageSize` calls, newest first. */
export async function listCalls(
  store: Pick<CallStore, "list">,
  filter: CallFilter,
  { pageSize, from }: { readonly pageSize: number; readonly from: CallPosition | undefined },
  onUnreadable: OnUnreadable = rethrow,
): Promise<CallPage> {
  const calls: StoredCall[] = [];
  let at = from;
  for (let scanned = 0; scanned < MAX_SCANNED; await nextTurn()) {
    // The block in which the previous page ended is read again if calls are left in it.
    const beforeSequence = at && (at.index === 0 ? at.sequence : at.sequence + 1);
    const { applicationId, startAt, endAt } = filter;
    const blocks = await store.list({ applicationId, startAt, endAt, beforeSequence, limit: BLOCKS });
    const texts = textsOf(filter);
    for await (const [block, own] of readBlocks(blocks, onUnreadable, (text) => mayHave(text, texts))) {
      const end = block.sequence === at?.sequence ? Math.min(at.index, own.length) : own.length;
      for (let index = end - 1; index >= 0; index -= 1) {
        const call = own[index] as StoredCall;
        if (isWantedCall(call, filter)) calls.push(call);
        if (calls.length === pageSize) return { calls, next: { sequence: block.sequence, index } };
      }
    }
    const cost = texts.length === 0 ? 1 : SEARCHED;
    scanned += startAt === undefined && endAt === undefined ? 0 : PASSED;
    for (const { count } of blocks) scanned += count * cost;
    const last = blocks.at(-1);
    if (last === undefined) return { calls, next: undefined };
    at = { sequence: last.sequence, index: 0 };
  }
  return { calls, next: at };
}

/** A block with a wanted call contains one of these texts. Empty when the filter does not allow such a pre-check. */
function textsOf({ users = [], requestId }: CallFilter): readonly string[] {
  return requestId === undefined ? users : [JSON.stringify(requestId)];
}

function mayHave(block: string, texts: readonly string[]): boolean {
  return texts.length === 0 || texts.some((text) => block.includes(text));
}

/** Whether a call matches a filter. Pure. */
export function isWantedCall(call: StoredCall, filter: CallFilter): boolean {
  const {
    applicationId,
    providers,
    errorType,
    users,
    requestId,
    startAt = 0,
    endAt = Number.POSITIVE_INFINITY,
  } = filter;
  return (
    (applicationId === undefined || call.applicationId === applicationId) &&
    (providers === undefined || providers.some((name) => name === call.provider)) &&
    (errorType === undefined || call.errorType === errorType) &&
    (users === undefined || users.some((user) => user === call.user)) &&
    (requestId === undefined || call.requestId === requestId) &&
    call.startedAt >= startAt &&
    call.startedAt < endAt
  );
}

/** Finds a call by its id; undefined when there is no record of it, or no longer. */
export async function findCall(
  store: Pick<CallStore, "findBlock">,
  callId: string,
  onUnreadable: OnUnreadable = rethrow,
): Promise<StoredCall | undefined> {
  const startedAt = timeOfCallId(callId);
  if (startedAt === undefined) return undefined;
  const block = await store.findBlock(callId, startedAt);
  return block && readBlock(block, onUnreadable).find((call) => call.callId === callId);
}

function readBlock(block: StoredBlock, onUnreadable: OnUnreadable): readonly StoredCall[] {
  try {
    return callsFromBlock(block);
  } catch (error) {
    onUnreadable(block, error);
    return [];
  }
}

/** Characters parsed before yielding to the event loop: some milliseconds. */
const MAX_CHARACTERS = 256 * 1024;

/**
 * Reads blocks one at a time. Callers choose the length of the path and the number of query parameters in a record, and
 * so the size of a block: usually a hundred kilobytes, at most two megabytes.
 *
 * @param isWanted whether to parse a block with this text: searching it takes a hundredth of the time of parsing it.
 */
export async function* readBlocks(
  blocks: readonly StoredBlock[],
  onUnreadable: OnUnreadable = rethrow,
  isWanted: (text: string) => boolean = () => true,
): AsyncGenerator<readonly [StoredBlock, readonly StoredCall[]], void, undefined> {
  let characters = 0;
  for (const block of blocks) {
    characters += block.calls.length;
    if (characters > MAX_CHARACTERS) {
      characters = block.calls.length;
      await nextTurn();
    }
    if (isWanted(block.calls)) yield [block, readBlock(block, onUnreadable)];
  }
}

/** Resolves when the work is done or the timeout has passed; rejects if the work rejects. */
export async function within(work: Promise<unknown>, ms: number): Promise<void> {
  let timer: NodeJS.Timeout | undefined;
  const over = new Promise<void>((resolve) => {
    timer = setTimeout(resolve, ms);
  });
  await Promise.race([work, over]).finally(() => clearTimeout(timer));
}
