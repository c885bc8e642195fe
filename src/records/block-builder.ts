import { type CallBlock, KIND, OWN } from "./call-block.js";
import type { StoredCall } from "./stored-call.js";

/** Becomes a block, call by call: what waits is one short text for each call, which the collector need not look into. */
export class BlockBuilder {
  /** UTF-16 code units of the text so far. */
  length = 0;
  readonly #applicationId: string;
  readonly #from: number;
  #firstAt: number;
  #lastAt: number;
  readonly #calls: string[] = [];
  /** By their text, which also is what is written. */
  readonly #kinds = new Map<string, number>();
  #last: StoredCall | undefined;
  #lastKind = 0;

  /** @param startedAt about when its calls began, in milliseconds since the epoch. */
  constructor(applicationId: string, startedAt: number) {
    this.#applicationId = applicationId;
    this.#from = startedAt;
    this.#firstAt = startedAt;
    this.#lastAt = startedAt;
  }

  get count(): number {
    return this.#calls.length;
  }

  add(call: StoredCall): void {
    const { startedAt } = call;
    if (startedAt < this.#firstAt) this.#firstAt = startedAt;
    if (startedAt > this.#lastAt) this.#lastAt = startedAt;
    const text = JSON.stringify(this.#valuesOf(call));
    this.#calls.push(text);
    this.length += text.length;
  }

  build(): CallBlock {
    const head = `{"kind":${JSON.stringify(KIND)},"own":${JSON.stringify(OWN)},"kinds":[${[...this.#kinds.keys()].join()}]`;
    return {
      applicationId: this.#applicationId,
      count: this.count,
      firstAt: this.#firstAt,
      lastAt: this.#lastAt,
      calls: [head, `"from":${this.#from}`, `"calls":[${this.#calls.join()}]}`].join(),
    };
  }

  /** Absent members are null in JSON. Whole numbers take a third of the time that others take to print. */
  #valuesOf(call: StoredCall): unknown[] {
    return [
      this.#kindOf(call),
      call.callId,
      call.startedAt - this.#from,
      call.path,
      call.queryKeys.length === 0 ? 0 : call.queryKeys,
      tenths(call.totalMs),
      tenths(call.tokenMs),
      tenths(call.queueMs),
      tenths(call.providerMs),
      call.requestBytes,
      call.responseBytes,
      call.isCaptured ? 1 : 0,
    ];
  }

  /** Calls are mostly of the kind of the one before. */
  #kindOf(call: StoredCall): number {
    if (this.#last !== undefined && isOfKind(call, this.#last)) return this.#lastKind;
    const text = JSON.stringify(KIND.map((member) => call[member] ?? null));
    const known = this.#kinds.get(text);
    if (known === undefined) {
      this.#kinds.set(text, this.#kinds.size);
      this.length += text.length;
    }
    this.#last = call;
    this.#lastKind = known ?? this.#kinds.size - 1;
    return this.#lastKind;
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

function tenths(ms: number | undefined): number | undefined {
  return ms === undefined ? undefined : Math.round(ms * 10);
}
