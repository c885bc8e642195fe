import { RelayError } from "../errors.js";

/** What all calls together may hold. */
export interface BudgetLimits {
  /** Calls at once. */
  readonly maxInFlight: number;
  /** Bytes of request and answer bodies of all calls at once. */
  readonly maxBufferedBytes: number;
}

/** One call's share of the budget, from its first byte until its answer has left. */
export interface Reservation {
  /** Counts bytes that the call holds from now on. False, with nothing counted, when the budget has no room for them. */
  reserve(bytes: number): boolean;
  /** Takes bytes back that turned out not to be held. */
  giveBack(bytes: number): void;
  /** Gives everything back; further calls of it do nothing. */
  release(): void;
}

/** Answers OVERLOADED instead of running out of memory. */
export interface Budget {
  /** A share for one more call; undefined when there are too many in flight. */
  open(): Reservation | undefined;
  readonly inFlight: number;
  readonly bufferedBytes: number;
}

/** Counts calls and bytes of one process. */
export function createBudget({ maxInFlight, maxBufferedBytes }: BudgetLimits): Budget {
  let inFlight = 0;
  let bufferedBytes = 0;

  function openReservation(): Reservation {
    let held = 0;
    let isOpen = true;
    inFlight++;
    return {
      reserve(bytes) {
        if (!isOpen || bufferedBytes + bytes > maxBufferedBytes) return false;
        held += bytes;
        bufferedBytes += bytes;
        return true;
      },
      giveBack(bytes) {
        if (!isOpen) return;
        held -= bytes;
        bufferedBytes -= bytes;
      },
      release() {
        if (!isOpen) return;
        isOpen = false;
        inFlight--;
        bufferedBytes -= held;
      },
    };
  }

  return {
    open: () => (inFlight < maxInFlight ? openReservation() : undefined),
    get inFlight() {
      return inFlight;
    },
    get bufferedBytes() {
      return bufferedBytes;
    },
  };
}

/** The row of a call that the budget has no room for. */
export function overloaded(): RelayError {
  return new RelayError("OVERLOADED", "The relay has too much to do right now. Try again in a moment.");
}
