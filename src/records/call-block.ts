import type { CallRecord } from "../telemetry/call-log.js";

/** Some calls of one application, in the order in which they ended. They are stored, read and deleted together. */
export interface CallBlock {
  readonly applicationId: string;
  readonly count: number;
  /** Earliest and latest start of the calls, in milliseconds since the epoch. */
  readonly firstAt: number;
  readonly lastAt: number;
  /** The calls as text: see {@link BlockText}. */
  readonly calls: string;
}

/** Members that many calls share. Each distinct combination is written once per block. */
const KIND = [
  "surface",
  "provider",
  "method",
  "origin",
  "status",
  "errorType",
  "rule",
  "cause",
] as const satisfies ReadonlyArray<keyof StoredCall>;

/** A call's own members, in the order in which they are written, after the index of its kind. */
const OWN = [
  "callId",
  "startedAt",
  "path",
  "queryKeys",
  "totalMs",
  "tokenMs",
  "queueMs",
  "providerMs",
  "requestBytes",
  "responseBytes",
  "isCaptured",
  "user",
  "connection",
  "requestId",
] as const satisfies ReadonlyArray<keyof StoredCall>;

/**
 * The text of a block: JSON, with the member names once at the front, so that another version can still tell which
 * member is which. A fifth of the size of one object per call.
 */
interface BlockText {
  readonly kind: readonly string[];
  readonly own: readonly string[];
  /** For each kind, the values of the members named in `kind`. */
  readonly kinds: ReadonlyArray<readonly unknown[]>;
  /** Added to each `startedAt`. */
  readonly from: number;
  /**
   * Index of the call's kind in `kinds`, then its own members. Absent members are null; times are in tenths of a
   * millisecond.
   */
  readonly calls: ReadonlyArray<readonly [kind: number, ...own: unknown[]]>;
}

const TENTHS = ["totalMs", "tokenMs", "queueMs", "providerMs"] as const;

/** Size limits of one block. */
interface BlockLimits {
  readonly maxCalls: number;
  /** A block is full when its text is longer than this, in UTF-16 code units. */
  readonly maxLength: number;
}

/**
 * Packs calls of one application into blocks, in order. A generator: each block is built on demand.
 *
 * @param digestOf the digest of a call's user: see {@link userText}.
 */
export function* blocksFrom(
  applicationId: string,
  calls: Iterable<EndedCall>,
  digestOf: (userId: string) => string,
  { maxCalls, maxLength }: BlockLimits,
): Generator<CallBlock, void, undefined> {
  let block = new BlockBuilder(applicationId);
  for (const call of calls) {
    block.add(call, call.userId === undefined ? undefined : digestOf(call.userId));
    if (block.count < maxCalls && block.length <= maxLength) continue;
    yield block.build();
    block = new BlockBuilder(applicationId);
  }
  if (block.count > 0) yield block.build();
}

class BlockBuilder {
  /** UTF-16 code units of the text so far. */
  length = 0;
  readonly #applicationId: string;
  readonly #calls: string[] = [];
  /** Index of each kind, by its JSON. */
  readonly #kinds = new Map<string, number>();
  #from = 0;
  #firstAt = Number.POSITIVE_INFINITY;
  #lastAt = 0;

  constructor(applicationId: string) {
    this.#applicationId = applicationId;
  }

  get count(): number {
    return this.#calls.length;
  }

  add(call: EndedCall, user: string | undefined): void {
    const { callId, startedAt, path = null, queryKeys, requestBytes, responseBytes, isCaptured } = call;
    if (this.count === 0) this.#from = startedAt;
    this.#firstAt = Math.min(this.#firstAt, startedAt);
    this.#lastAt = Math.max(this.#lastAt, startedAt);
    const kind = this.#placeOf(JSON.stringify(KIND.map((member) => call[member] ?? null)));
    const keys = queryKeys.length === 0 ? 0 : queryKeys;
    const own: unknown[] = [kind, callId, startedAt - this.#from, path, keys];
    own.push(tenths(call.totalMs), tenths(call.tokenMs), tenths(call.queueMs), tenths(call.providerMs));
    own.push(requestBytes, responseBytes, isCaptured ? 1 : 0, user, call.connection);
    if (call.requestId !== undefined) own.push(call.requestId);
    const text = JSON.stringify(own);
    this.#calls.push(text);
    this.length += text.length;
  }

  build(): CallBlock {
    const kinds = [...this.#kinds.keys()];
    return {
      applicationId: this.#applicationId,
      count: this.count,
      firstAt: this.#firstAt,
      lastAt: this.#lastAt,
      calls: `${HEAD},"kinds":[${kinds.join()}],"from":${this.#from},"calls":[${this.#calls.join()}]}`,
    };
  }

  #placeOf(kind: string): number {
    const known = this.#kinds.get(kind);
    if (known !== undefined) return known;
    this.length += kind.length;
    this.#kinds.set(kind, this.#kinds.size);
    return this.#kinds.size - 1;
  }
}

const HEAD = `{"kind":${JSON.stringify(KIND)},"own":${JSON.stringify(OWN)}`;

function tenths(ms: number | undefined): number | null {
  return ms === undefined ? null : Math.round(ms * 10);
}

/** The calls of a block. Pure. Throws when the text is malformed: from a very old version or a damaged file. */
export function callsFromBlock({ applicationId, calls }: Pick<CallBlock, "applicationId" | "calls">): StoredCall[] {
  const text = JSON.parse(calls) as BlockText;
  const kinds = text.kinds.map((values) => membersFrom(text.kind, values));
  return text.calls.map(([kind, ...values]) => {
    const own = membersFrom(text.own, values);
    for (const name of TENTHS) if (own[name] !== undefined) own[name] = (own[name] as number) / 10;
    own["startedAt"] = (own["startedAt"] as number) + text.from;
    const { queryKeys, isCaptured, ...others } = { ...kinds[kind], ...own };
    const call = {
      ...others,
      applicationId,
      queryKeys: queryKeys || [],
      isCaptured: Boolean(isCaptured),
    } as StoredCall;
    return requireMembers(call);
  });
}

/** Members that every call has. */
const TEXTS = ["callId", "surface"] as const;
const NUMBERS = ["startedAt", "status", "requestBytes", "responseBytes"] as const;

function requireMembers(call: StoredCall): StoredCall {
  const isWhole = NUMBERS.every((name) => Number.isSafeInteger(call[name])) && Number.isFinite(call.totalMs);
  if (isWhole && TEXTS.every((name) => typeof call[name] === "string")) return call;
  throw new TypeError("a call in this block lacks what every call has");
}

function membersFrom(names: readonly string[], values: readonly unknown[]): Record<string, unknown> {
  return Object.fromEntries(names.map((name, at) => [name, values[at] ?? undefined]));
}

/**
 * One call as it is stored: names and numbers. Of what the caller wrote it holds only where the call went; no query
 * values, no headers, no body, and never a token.
 */
export interface StoredCall extends Omit<CallRecord, "applicationId" | "traceId" | "headMs"> {
  readonly applicationId: string;
  /** When the request came in, in milliseconds since the epoch. */
  readonly startedAt: number;
  /** Without the query; 1,024 characters at most. */
  readonly path: string | undefined;
  /** Names of the query's parameters, without their values; 32 at most. */
  readonly queryKeys: readonly string[];
  /** Milliseconds in the provider's queue. */
  readonly queueMs: number | undefined;
  /** Whether headers and bodies were captured. */
  readonly isCaptured: boolean;
  /** Digest of {@link userText}, to find records by. Without the key file it reveals nothing. */
  readonly user: string | undefined;
  /** Id of the user's connection; undefined when the call failed before it was looked up. */
  readonly connection: string | undefined;
}

/** A call that waits to be written, with the user id in the clear. The stored record has only a digest of it. */
export type EndedCall = Omit<StoredCall, "user"> & { readonly userId: string | undefined };

/** Purpose of the digests of users in records. */
export const USER_PURPOSE = "user of a call record";

/**
 * The input of a user's digest. Includes the application, since user ids are unique only within one. Application ids
 * contain no NUL. Pure.
 */
export function userText(applicationId: string, userId: string): string {
  return `${applicationId}\0${userId}`;
}

/** A block as it is stored. */
export interface StoredBlock extends CallBlock {
  /**
   * Increases with every block, in the order in which blocks become visible: reading on from a sequence misses none.
   */
  readonly sequence: number;
}

/** Which blocks to read. */
export interface BlockFilter {
  /** Undefined for all applications. */
  readonly applicationId: string | undefined;
  /**
   * Only blocks that may have calls from this time range, in milliseconds since the epoch: `startAt` inclusive, `endAt`
   * exclusive. One query examines a bounded number of blocks; when it reaches that bound, it also returns the last
   * block examined, whether or not it matches, so that the caller can continue from there.
   */
  readonly startAt?: number | undefined;
  readonly endAt?: number | undefined;
  /** Only older blocks; undefined for the newest. */
  readonly beforeSequence: number | undefined;
  readonly limit: number;
}

/**
 * Keeps the last calls of each application in a ring of blocks. Writing one block for many calls costs a fraction of a
 * row per call, and only blocks have to be indexed.
 *
 * Every operation rejects with RelayError STORE_UNAVAILABLE when the store cannot be used.
 */
export interface CallStore {
  /**
   * Writes blocks, all or none, and deletes the oldest blocks of their applications beyond `maxCalls` calls, some at a
   * time. Skips blocks of an application that no longer exists. Resolves to the number of calls written.
   */
  append(blocks: readonly CallBlock[], maxCalls: number): Promise<number>;
  /** Blocks from the newest to the oldest. */
  list(filter: BlockFilter): Promise<StoredBlock[]>;
  /** Blocks after a sequence, in order; at most `limit`. */
  listAfter(sequence: number, limit: number): Promise<StoredBlock[]>;
  /** The newest block's sequence; 0 when no block was ever written. */
  lastSequence(): Promise<number>;
  /** The block that holds a call, which began at `startedAt`; undefined when there is none. */
  findBlock(callId: string, startedAt: number): Promise<StoredBlock | undefined>;
  /** Deletes at most `limit` blocks whose calls all began before a time. Resolves to the number deleted. */
  deleteBefore(time: number, limit: number): Promise<number>;
}
