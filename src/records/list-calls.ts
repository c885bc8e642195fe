import { setImmediate as nextTurn } from "node:timers/promises";
import { timeOfCallId } from "../http/identity.js";
import { type CallStore, callsFromBlock, type StoredBlock, type StoredCall } from "./call-block.js";

/** Which calls are wanted; what is undefined does not matter. */
export interface CallFilter {
  readonly applicationId: string | undefined;
  readonly provider: string | undefined;
  readonly errorType: string | undefined;
  /** Digests of one user, any of which may be in a record. */
  readonly users?: readonly string[] | undefined;
  /** The caller's own id of its request. */
  readonly requestId?: string | undefined;
  /** When calls came in, milliseconds since the epoch: from `startAt` on, and before `endAt`. */
  readonly startAt?: number | undefined;
  readonly endAt?: number | undefined;
}

/** A place among the calls, which are listed from the newest to the oldest: behind this one of this block. */
export interface CallPosition {
  readonly sequence: number;
  readonly index: number;
}

/** Some calls, and where the next ones begin. */
interface CallPage {
  readonly calls: readonly StoredCall[];
  /** Undefined when there are no more. */
  readonly next: CallPosition | undefined;
}

/** Called for a block that cannot be read, with why: unless it throws, its calls are left out, and the others are listed. */
export type OnUnreadable = (block: StoredBlock, error: unknown) => void;

const rethrow: OnUnreadable = (_block, error) => {
  throw error;
};

/** Read at a time: one to ten megabytes. */
const BLOCKS = 8;
/** Calls that are looked at for one page, which may then have fewer than asked for, or none (AIP-158). */
const MAX_SCANNED = 20_000;
/** What a call counts for whose block is only searched for a text. */
const SEARCHED = 0.1;
/** What blocks of other times count that are passed by for one look. */
const PASSED = 50;

/** Lists calls, newest first, up to `pageSize` of them. */
export async function listCalls(
  store: Pick<CallStore, "list">,
  filter: CallFilter,
  { pageSize, from }: { readonly pageSize: number; readonly from: CallPosition | undefined },
  onUnreadable: OnUnreadable = rethrow,
): Promise<CallPage> {
  const calls: StoredCall[] = [];
  let at = from;
  for (let scanned = 0; scanned < MAX_SCANNED; await nextTurn()) {
    // The block that a page ended in is read again where it has more.
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

/** Texts of which a block has one where it has a wanted call, as they stand in it; none where any block may. */
function textsOf({ users = [], requestId }: CallFilter): readonly string[] {
  return requestId === undefined ? users : [JSON.stringify(requestId)];
}

function mayHave(block: string, texts: readonly string[]): boolean {
  return texts.length === 0 || texts.some((text) => block.includes(text));
}

/** Whether a call is one of those that a filter names. Pure. */
export function isWantedCall(call: StoredCall, filter: CallFilter): boolean {
  const {
    applicationId,
    provider,
    errorType,
    users,
    requestId,
    startAt = 0,
    endAt = Number.POSITIVE_INFINITY,
  } = filter;
  return (
    (applicationId === undefined || call.applicationId === applicationId) &&
    (provider === undefined || call.provider === provider) &&
    (errorType === undefined || call.errorType === errorType) &&
    (users === undefined || users.some((user) => user === call.user)) &&
    (requestId === undefined || call.requestId === requestId) &&
    call.startedAt >= startAt &&
    call.startedAt < endAt
  );
}

/** Finds a call by its id; undefined when it is not kept, or not any more. */
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

/** Characters that are read before others have their turn: some milliseconds. */
const MAX_CHARACTERS = 256 * 1024;

/**
 * Reads the calls of blocks one after the other. Callers decide how long a path and how many parameters a record has, and
 * with them how large a block is: a hundred kilobytes as a rule, two megabytes at most.
 *
 * @param isWanted whether the calls of a block with this text are: finding a word in it takes a hundredth of reading it.
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

/** Resolves when the work is done or the time is over; rejects as the work does. */
export async function within(work: Promise<unknown>, ms: number): Promise<void> {
  let timer: NodeJS.Timeout | undefined;
  const over = new Promise<void>((resolve) => {
    timer = setTimeout(resolve, ms);
  });
  await Promise.race([work, over]).finally(() => clearTimeout(timer));
}
