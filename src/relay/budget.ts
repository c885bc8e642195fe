import { RelayError } from "../errors.js";

/** What all calls together may hold. */
export interface BudgetLimits {
  /** Calls at once. */
  readonly maxInFlight: number;
  /** Bytes of request and answer bodies of all calls at once. */
  readonly maxBufferedBytes: number;
}

/** Requests being read for each call that may be in flight: many connections may send one at the same moment. */
const READING_PER_CALL = 4;

/** One call's share of the budget, from its first byte until its answer has left. */
export interface Reservation {
  /** Called when the request, which is still being read, has to give way to others: it holds nothing any more. */
  onEvicted: (() => void) | undefined;
  /** Counts bytes that the call holds from now on. False, with nothing counted, when the budget has no room for them. */
  reserve(bytes: number): boolean;
  /** Takes bytes back that turned out not to be held. */
  giveBack(bytes: number): void;
  /** Makes it a call in flight, now that its request is read. False when there are too many. */
  begin(): boolean;
  /** Gives everything back; further calls of it do nothing. */
  release(): void;
}

/** Answers OVERLOADED instead of running out of memory. */
export interface Budget {
  /** A share for one more request, whose body is still to be read. */
  open(): Reservation;
  readonly inFlight: number;
  readonly bufferedBytes: number;
}

/**
 * Counts calls and bytes of one process.
 *
 * A request counts as a call in flight when it is read, not before: clients that send a byte a second would otherwise
 * keep everybody else out (threats I15). What a request that is being read holds is not its own for good: an honest
 * client's is read in no time, so the oldest one gives way when there are too many, or when a younger one or a call
 * needs room.
 */
export function createBudget({ maxInFlight, maxBufferedBytes }: BudgetLimits): Budget {
  /** Being read, oldest first, with the bytes that each holds. */
  const reading = new Map<Reservation, () => number>();
  let inFlight = 0;
  let bufferedBytes = 0;

  function evict(reservation: Reservation): void {
    reservation.release();
    reservation.onEvicted?.();
  }

  function makeRoom(bytes: number, wanted: Reservation): boolean {
    for (const [reservation, held] of reading) {
      if (reservation === wanted || bufferedBytes + bytes <= maxBufferedBytes) break;
      if (held() > 0) evict(reservation);
    }
    return bufferedBytes + bytes <= maxBufferedBytes;
  }

  function openReservation(): Reservation {
    let held = 0;
    let state: "reading" | "inFlight" | "released" = "reading";
    const reservation: Reservation = {
      onEvicted: undefined,
      reserve(bytes) {
        if (state === "released" || !makeRoom(bytes, reservation)) return false;
        held += bytes;
        bufferedBytes += bytes;
        return true;
      },
      giveBack(bytes) {
        if (state === "released") return;
        held -= bytes;
        bufferedBytes -= bytes;
      },
      begin() {
        if (state !== "reading" || inFlight >= maxInFlight) return false;
        reading.delete(reservation);
        state = "inFlight";
        inFlight++;
        return true;
      },
      release() {
        if (state === "released") return;
        if (state === "inFlight") inFlight--;
        reading.delete(reservation);
        state = "released";
        bufferedBytes -= held;
      },
    };
    reading.set(reservation, () => held);
    return reservation;
  }

  return {
    open() {
      const [oldest] = reading.keys();
      if (reading.size >= READING_PER_CALL * maxInFlight && oldest !== undefined) evict(oldest);
      return openReservation();
    },
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
