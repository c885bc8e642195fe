import { type CallBlock, KIND, OWN } from "./call-block.js";
import type { StoredCall } from "./stored-call.js";

/** What is a call's own, in the order of `OWN`, as it is written: see {@link BlockBuilder.add}. */
interface OwnValues {
  readonly callId: string;
  /** Milliseconds since the epoch. */
  readonly startedAt: number;
  /** Path and keys of the query, as JSON without brackets around them. */
  readonly target: string;
  /** What follows, from `totalMs` on; times in whole tenths of a millisecond, NaN for what is absent. */
  readonly figures: Float64Array;
}

const HEAD = `{"kind":${JSON.stringify(KIND)},"own":${JSON.stringify(OWN)}`;

/** Becomes a block, call by call. */
class BlockBuilder {
  /** UTF-16 code units of the text so far. */
  length = 0;
  readonly #applicationId: string;
  readonly #calls: string[] = [];
  readonly #kinds = new Map<CallKind, number>();
  #from = 0;
  #firstAt = Number.POSITIVE_INFINITY;
  #lastAt = 0;

  constructor(applicationId: string) {
    this.#applicationId = applicationId;
  }

  get count(): number {
    return this.#calls.length;
  }

  add(kind: CallKind, { callId, startedAt, target, figures }: OwnValues): void {
    if (this.count === 0) this.#from = startedAt;
    this.#firstAt = Math.min(this.#firstAt, startedAt);
    this.#lastAt = Math.max(this.#lastAt, startedAt);
    // JSON has null for NaN.
    const figuresAndEnd = JSON.stringify(Array.from(figures)).slice(1);
    const text = `[${this.#placeOf(kind)},"${callId}",${startedAt - this.#from},${target},${figuresAndEnd}`;
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

  #placeOf(kind: CallKind): number {
    const known = this.#kinds.get(kind);
    if (known !== undefined) return known;
    this.length += kind.length;
    this.#kinds.set(kind, this.#kinds.size);
    return this.#kinds.size - 1;
  }
}

/** What some calls have in common, as it is written in their block: JSON. */
type CallKind = string;

/** Tells calls of one kind from others. */
class CallKinds {
  /** One text for all calls that are alike, by itself. */
  readonly #known = new Map<CallKind, CallKind>();
  #last: StoredCall | undefined;
  #lastKind: CallKind = "";

  /** The kind of a call: mostly that of the one before. */
  of(call: StoredCall): CallKind {
    if (this.#last !== undefined && isOfKind(call, this.#last)) return this.#lastKind;
    const made = JSON.stringify(KIND.map((member) => call[member] ?? null));
    const kind = this.#known.get(made) ?? made;
    this.#known.set(kind, kind);
    this.#last = call;
    this.#lastKind = kind;
    return kind;
  }
}

/** Written out: it is done for every call. */
function isOfKind(call: StoredCall, other: StoredCall): boolean {
  return (
    call.surface === other.surface &&
    call.provider === other.provider &&
    call.method === other.method &&
    call.origin === other.origin &&
    call.status === other.status &&
    call.errorType === other.errorType &&
    call.rule === other.rule &&
    call.cause === other.cause
  );
}

/** How calls are put into blocks. */
interface WaitingOptions {
  readonly applicationId: string;
  /** Most calls that are kept of the application. */
  readonly maxCalls: number;
  /** Most calls of one block. */
  readonly maxBlock: number;
  /** A block is full when its text is longer than this, in UTF-16 code units. */
  readonly maxLength: number;
}

/** A place has this many bytes for id and path of a call; a longer path, and keys of a query, are kept beside it. */
const PLACE_BYTES = 128;
const ID_BYTES = 36;
const PATH_BYTES = PLACE_BYTES - ID_BYTES;
/** Of a longer path of other characters than ASCII as many bytes may be written as it has characters, and yet not all. */
const MAX_SHORT = PATH_BYTES - 4;
/** Numbers of a call: when it began, its figures in the order of `OWN`, and how long its path is. */
const NUMBERS = 9;
const FIGURES = { from: 1, to: 8 } as const;
const PATH_LENGTH_AT = 8;
const FIRST_PLACES = 8;
/** Of a place, with the reference to its kind. */
const BYTES = PLACE_BYTES + (NUMBERS + 1) * 8;

/**
 * The last calls of an application, while they wait to be written: no more than its ring holds. Where more come, the
 * first ones give way, since they would be deleted in the same moment in which they are written.
 *
 * They wait as bytes and numbers, so that a call leaves no object behind, and nothing is written out of those that give way.
 */
export class WaitingCalls {
  readonly #options: WaitingOptions;
  readonly #kinds = new CallKinds();
  /** How many came in. */
  #added = 0;
  #places = 0;
  #bytes = Buffer.alloc(0);
  #numbers = new Float64Array();
  readonly #kindAt: CallKind[] = [];
  /** By place: targets that have no room in it, as they are written. */
  readonly #longTargets = new Map<number, string>();
  #longLength = 0;

  constructor(options: WaitingOptions) {
    this.#options = options;
  }

  get count(): number {
    return Math.min(this.#added, this.#places);
  }

  /** Bytes of all that waits. */
  get size(): number {
    return this.#places * BYTES + this.#longLength;
  }

  add(call: StoredCall): void {
    if (this.#added === this.#places && this.#places < this.#options.maxCalls) this.#grow();
    const place = this.#added % this.#places;
    this.#added += 1;
    this.#kindAt[place] = this.#kinds.of(call);
    this.#bytes.write(call.callId, place * PLACE_BYTES, ID_BYTES, "latin1");
    this.#setTarget(place, call);
    const numbers = this.#numbers;
    const at = place * NUMBERS;
    numbers[at] = call.startedAt;
    numbers[at + 1] = tenths(call.totalMs);
    numbers[at + 2] = tenths(call.tokenMs);
    numbers[at + 3] = tenths(call.queueMs);
    numbers[at + 4] = tenths(call.providerMs);
    numbers[at + 5] = call.requestBytes;
    numbers[at + 6] = call.responseBytes;
    numbers[at + 7] = call.isCaptured ? 1 : 0;
  }

  /** All that waits, in order, made when it is asked for; nothing is to be added any more. */
  *blocks(): Generator<CallBlock, void, undefined> {
    const { applicationId, maxBlock, maxLength } = this.#options;
    let block = new BlockBuilder(applicationId);
    for (let index = this.#added - this.count; index < this.#added; index += 1) {
      this.#addTo(block, index % this.#places);
      if (block.count < maxBlock && block.length <= maxLength) continue;
      yield block.build();
      block = new BlockBuilder(applicationId);
    }
    if (block.count > 0) yield block.build();
  }

  #addTo(block: BlockBuilder, place: number): void {
    const at = place * NUMBERS;
    const start = place * PLACE_BYTES;
    const pathAt = start + ID_BYTES;
    const length = this.#numbers[at + PATH_LENGTH_AT] as number;
    block.add(this.#kindAt[place] as CallKind, {
      callId: this.#bytes.toString("latin1", start, pathAt),
      startedAt: this.#numbers[at] as number,
      target: this.#longTargets.get(place) ?? targetOf(this.#bytes.toString("latin1", pathAt, pathAt + length), []),
      figures: this.#numbers.subarray(at + FIGURES.from, at + FIGURES.to),
    });
  }

  /** A copy: the path may be a part of a text that is much longer. */
  #setTarget(place: number, { path, queryKeys }: StoredCall): void {
    if (this.#longTargets.size > 0) this.#forgetLongTarget(place);
    const isShort = path !== undefined && queryKeys.length === 0 && path.length <= MAX_SHORT;
    if (isShort && this.#writtenBytes(place, path) === path.length) return;
    this.#keepLongTarget(place, targetOf(path, queryKeys));
  }

  /** As many as the path has characters if these are ASCII and all written, and only then. */
  #writtenBytes(place: number, path: string): number {
    const written = this.#bytes.write(path, place * PLACE_BYTES + ID_BYTES, PATH_BYTES, "utf8");
    this.#numbers[place * NUMBERS + PATH_LENGTH_AT] = written;
    return written;
  }

  #keepLongTarget(place: number, target: string): void {
    this.#longTargets.set(place, target);
    this.#longLength += target.length;
  }

  #forgetLongTarget(place: number): void {
    this.#longLength -= this.#longTargets.get(place)?.length ?? 0;
    this.#longTargets.delete(place);
  }

  #grow(): void {
    this.#places = Math.min(this.#options.maxCalls, Math.max(FIRST_PLACES, this.#places * 2));
    const bytes = Buffer.allocUnsafeSlow(this.#places * PLACE_BYTES);
    bytes.set(this.#bytes);
    this.#bytes = bytes;
    const numbers = new Float64Array(this.#places * NUMBERS);
    numbers.set(this.#numbers);
    this.#numbers = numbers;
  }
}

/** As it is written. */
function targetOf(path: string | undefined, queryKeys: readonly string[]): string {
  return `${path === undefined ? null : JSON.stringify(path)},${queryKeys.length === 0 ? 0 : JSON.stringify(queryKeys)}`;
}

/** NaN for what is absent. */
function tenths(ms: number | undefined): number {
  return ms === undefined ? Number.NaN : Math.round(ms * 10);
}
