import { KIND } from "./call-block.js";
import type { StoredCall } from "./stored-call.js";

/** What some calls have in common, as it is written in their block: JSON. */
export type CallKind = string;

/** Tells calls of one kind from others. */
export class CallKinds {
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
