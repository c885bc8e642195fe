import { RelayError } from "../errors.js";
import { LinkedList, type Links } from "../linked-list.js";

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
  /**
   * Has a function called, in place of the one before, when it has to end before its end: it holds nothing any more.
   *
   * A method, since V8 takes a function that is written where a property is assigned for one that stays, and makes it
   * among the old objects: all that it can reach, the whole request, would be copied there and kept until the next full
   * collection.
   */
  whenEvicted(listener: () => void): void;
  /** Counts bytes that the call holds from now on. False, with nothing counted, when the budget has no room for them. */
  reserve(bytes: number): boolean;
  /** Takes bytes back that turned out not to be held. */
  giveBack(bytes: number): void;
  /** Makes it a call in flight, now that its request is read. False when there are too many. */
  begin(): boolean;
  /** Ends it: a request that is still being read gives way to others, an answer is not taken by its caller. */
  evict(): void;
  /** Gives everything back; further calls of it do nothing. */
  release(): void;
}

/** Answers OVERLOADED instead of running out of memory. */
export interface Budget {
  /** A share for one more request, whose body is still to be read. */
  open(): Reservation;
  readonly inFlight: number;
  readonly bufferedBytes: number;
  /** How often it said no, since the start. */
  readonly refusals: BudgetRefusals;
}

/** How often there was no room. */
export interface BudgetRefusals {
  /** Too many calls at once. */
  readonly inFlight: number;
  /** No room for the bytes of a body. */
  readonly bytes: number;
  /** A request that was being read had to give way to another one. */
  readonly reading: number;
}

/**
 * Counts calls and bytes of one process.
 *
 * A request counts as a call in flight when it is read, not before: clients that send a byte a second would otherwise
 * keep everybody else out (threats I15). What a request that is being read holds is not its own for good: an honest
 * client's is read in no time, so the oldest one gives way when there are too many, or when a younger one or a call
 * needs room.
 */
export function createBudget(limits: BudgetLimits): Budget {
  const account = new Account(limits);
  return {
    open: () => account.open(),
    get inFlight() {
      return account.inFlight;
    },
    get bufferedBytes() {
      return account.bufferedBytes;
    },
    refusals: account.refusals,
  };
}

/** What all reservations hold. */
class Account {
  /** Being read, oldest first. */
  readonly reading = new LinkedList<Share>();
  readonly refusals = { inFlight: 0, bytes: 0, reading: 0 };
  inFlight = 0;
  bufferedBytes = 0;
  readonly #limits: BudgetLimits;

  constructor(limits: BudgetLimits) {
    this.#limits = limits;
  }

  open(): Share {
    const { reading } = this;
    if (reading.size >= READING_PER_CALL * this.#limits.maxInFlight && reading.first !== undefined) {
      this.#giveWay(reading.first);
    }
    const share = new Share(this);
    reading.add(share);
    return share;
  }

  /** Whether there is room, if need be after requests that are being read have given way. */
  makeRoom(bytes: number, wanted: Share): boolean {
    const { maxBufferedBytes } = this.#limits;
    let share = this.reading.first;
    while (share !== undefined && share !== wanted && this.bufferedBytes + bytes > maxBufferedBytes) {
      const { next } = share;
      if (share.held > 0) this.#giveWay(share);
      share = next;
    }
    const hasRoom = this.bufferedBytes + bytes <= maxBufferedBytes;
    if (!hasRoom) this.refusals.bytes += 1;
    return hasRoom;
  }

  hasPlace(): boolean {
    const hasPlace = this.inFlight < this.#limits.maxInFlight;
    if (!hasPlace) this.refusals.inFlight += 1;
    return hasPlace;
  }

  #giveWay(share: Share): void {
    this.refusals.reading += 1;
    share.evict();
  }
}

/** A reservation. A class, since every call has one: one object, no closures. */
class Share implements Reservation, Links<Share> {
  previous: Share | undefined;
  next: Share | undefined;
  held = 0;
  readonly #account: Account;
  #state: "reading" | "inFlight" | "released" = "reading";
  #onEvicted: (() => void) | undefined;

  constructor(account: Account) {
    this.#account = account;
  }

  whenEvicted(listener: () => void): void {
    this.#onEvicted = listener;
  }

  reserve(bytes: number): boolean {
    if (this.#state === "released" || !this.#account.makeRoom(bytes, this)) return false;
    this.held += bytes;
    this.#account.bufferedBytes += bytes;
    return true;
  }

  giveBack(bytes: number): void {
    if (this.#state === "released") return;
    this.held -= bytes;
    this.#account.bufferedBytes -= bytes;
  }

  begin(): boolean {
    if (this.#state !== "reading" || !this.#account.hasPlace()) return false;
    this.#account.reading.remove(this);
    this.#state = "inFlight";
    this.#account.inFlight++;
    return true;
  }

  release(): void {
    if (this.#state === "released") return;
    if (this.#state === "inFlight") this.#account.inFlight--;
    else this.#account.reading.remove(this);
    this.#state = "released";
    this.#account.bufferedBytes -= this.held;
  }

  evict(): void {
    this.release();
    this.#onEvicted?.();
  }
}

/** Room for bytes. */
export type Room = Pick<Reservation, "reserve">;

/** Counts bytes that a call holds from now on. Fails with OVERLOADED when there is no room for them. */
export function requireRoom(memory: Room, bytes: number): void {
  if (!memory.reserve(bytes)) throw overloaded();
}

/** The row of a call that the budget has no room for. */
export function overloaded(): RelayError {
  return new RelayError("OVERLOADED", "The relay has too much to do right now. Try again in a moment.");
}
