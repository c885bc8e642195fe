/** Some calls of one application, in the order in which they ended: they are kept, read and deleted together. */
export interface CallBlock {
  readonly applicationId: string;
  readonly count: number;
  /** When the first and the last of them began, in milliseconds since the epoch. */
  readonly firstAt: number;
  readonly lastAt: number;
  /** All of them, as text. */
  readonly calls: string;
}

/** What many calls have in common; written once in each block for all that are alike. */
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

/** What is a call's own, in the order in which it is written, behind the place of its kind in the block. */
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
 * The text of a block: JSON, with the names of the members once before all calls, so that a reader of another version
 * still knows which member is which. A fifth of the size that an object for each would take.
 */
interface BlockText {
  readonly kind: readonly string[];
  readonly own: readonly string[];
  /** What the members of `kind` are, of each kind. */
  readonly kinds: ReadonlyArray<readonly unknown[]>;
  /** Added to each `startedAt`. */
  readonly from: number;
  /** The place of the call's kind in `kinds`, then its own members. Absent ones are null, times tenths of a millisecond. */
  readonly calls: ReadonlyArray<readonly [kind: number, ...own: unknown[]]>;
}

const TENTHS = ["totalMs", "tokenMs", "queueMs", "providerMs"] as const;

/** How much is put into one block. */
interface BlockLimits {
  readonly maxCalls: number;
  /** A block is full when its text is longer than this, in UTF-16 code units. */
  readonly maxLength: number;
}

/**
 * The blocks of some calls of one application, in order, each made when it is asked for.
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

/** Becomes a block, call by call. */
class BlockBuilder {
  /** UTF-16 code units of the text so far. */
  length = 0;
  readonly #applicationId: string;
  readonly #calls: string[] = [];
  /** What some calls have in common, as JSON, and its place. */
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

/** The calls of a block. Pure. Throws for a text that is none, as one of a version long past or of a damaged file. */
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

/** What every call has. */
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
 * One call as it is kept. Names and numbers, and of what the caller wrote only where the call went: neither a value of
 * the query nor a header nor a body, and never a token.
 */
export interface StoredCall {
  readonly callId: string;
  readonly applicationId: string;
  /** When the request came in, in milliseconds since the epoch. */
  readonly startedAt: number;
  /** How it came in: `rest`, `stream`, `connect`, `grpc`, `grpc-web`, `admin`. */
  readonly surface: string;
  /** The provider's name; undefined when there is no such provider. */
  readonly provider: string | undefined;
  /** The HTTP method; undefined when the call got no further than its format. */
  readonly method: string | undefined;
  /** Where the call went, or would have gone; undefined when the url was refused. */
  readonly origin: string | undefined;
  /** Without the query; 1,024 characters at most. */
  readonly path: string | undefined;
  /** Names of the query's parameters, without their values; 32 at most. */
  readonly queryKeys: readonly string[];
  readonly status: number;
  readonly errorType: string | undefined;
  /** The rule that allowed the url, or that refused url or caller. */
  readonly rule: string | undefined;
  /** Code or class of the error behind a failure, such as ECONNREFUSED. */
  readonly cause: string | undefined;
  /** Milliseconds: the whole call, and in it the waits for a token, for a place among the provider's calls, for the provider. */
  readonly totalMs: number;
  readonly tokenMs: number | undefined;
  readonly queueMs: number | undefined;
  readonly providerMs: number | undefined;
  /** Bytes of the bodies sent to the provider and handed to the caller. */
  readonly requestBytes: number;
  readonly responseBytes: number;
  /** Whether headers and bodies of it were captured. */
  readonly isCaptured: boolean;
  /** Digest of {@link userText}: records are found by it, and it tells nothing to who has no key file. */
  readonly user: string | undefined;
  /** Id of the user's connection; undefined when the call came not so far. */
  readonly connection: string | undefined;
  /** The caller's own x-request-id: visible ASCII, 128 characters at most. */
  readonly requestId: string | undefined;
}

/** One call as it waits to be written: with its user in the clear, whom the record does not name. */
export type EndedCall = Omit<StoredCall, "user"> & { readonly userId: string | undefined };

/** What the digests of users in records are for. */
export const USER_PURPOSE = "user of a call record";

/** What is digested of a user: the same id is another user in another application, whose id has no NUL. Pure. */
export function userText(applicationId: string, userId: string): string {
  return `${applicationId}\0${userId}`;
}

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
