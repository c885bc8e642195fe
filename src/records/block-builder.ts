import { type CallBlock, KIND, OWN } from "./call-block.js";
import type { CallKind } from "./call-kinds.js";

/** What is a call's own, in the order of `OWN`, as it is written: see {@link BlockBuilder.add}. */
export interface OwnValues {
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
export class BlockBuilder {
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
