import { LinkedList, type Links, Parties, Shares } from "../lib/shares.js";
import { overloaded, RelayError } from "../model/errors.js";

/** What all calls together may hold. */
interface BudgetLimits {
  /** Calls at once. */
  readonly maxInFlight: number;
  /** Bytes of request and answer bodies of all calls at once. */
  readonly maxBufferedBytes: number;
}

/** Requests being read for each call that may be in flight: many connections may send one at the same moment. */
const READING_PER_CALL = 4;

/** One call's share of the budget, from its first byte until its answer has left. */
export interface Reservation {
  /** Who it is counted to: one object for all calls of an application, or of a network while that is not known. */
  readonly owner: unknown;
  /**
   * Has a function called, in place of the one before, when it has to end before its end: it holds nothing any more.
   *
   * A method, since V8 takes a function that is written where a property is assigned for one that stays, and makes it
   * among the old objects: all that it can reach, the whole request, would be copied there and kept until the next full
   * collection.
   */
  whenEvicted(listener: (reason: RelayError) => void): void;
  /** Counts bytes that the call holds from now on. False, with nothing counted, when the budget has no room for them. */
  reserve(bytes: number): boolean;
  /** Takes bytes back that turned out not to be held. */
  giveBack(bytes: number): void;
  /** Makes it a call in flight, now that its request is read. False when there are too many. */
  begin(): boolean;
  /** Counts it to the application whose call it has proved to be. False when that has more than its share of the places. */
  belongTo(applicationId: string): boolean;
  /** Gives everything back; further calls of it do nothing. */
  release(): void;
}

/** Answers OVERLOADED instead of running out of memory. */
export interface Budget {
  /**
   * A share for one more request, whose body is still to be read.
   *
   * @param network where it comes from, see `clientNetworkOf`: who calls is not known yet.
   */
  open(network: string): Reservation;
  readonly inFlight: number;
  readonly bufferedBytes: number;
  /** How often it said no, since the start. */
  readonly refusals: BudgetRefusals;
}

/** How often there was no room. */
interface BudgetRefusals {
  /** Too many calls at once. */
  readonly inFlight: number;
  /** No room for the bytes of a body; also for those of a call that had to give way to one of another application. */
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
 *
 * Both are shared out: every application is a party, and all callers together whose application is not known are one. A
 * call that was sent cannot be taken back, so that no party gets the last places while it holds many. Where there are no
 * bytes left, the call gives way that holds most of the application that has most.
 */
export function createBudget(limits: BudgetLimits): Budget {
  const account = new Account(limits);
  return {
    open: (network) => account.open(network),
    get inFlight() {
      return account.places.total;
    },
    get bufferedBytes() {
      return account.bytes.total;
    },
    refusals: account.refusals,
  };
}

/** Who holds something: an application, the callers of one network, or all callers that are not known. */
class Holder {
  bytes = 0;
  places = 0;

  get isIdle(): boolean {
    return this.bytes === 0 && this.places === 0;
  }
}

/** What all reservations hold. */
class Account {
  /** Being read, oldest first. */
  readonly reading = new LinkedList<Share>();
  readonly running = new LinkedList<Share>();
  readonly refusals = { inFlight: 0, bytes: 0, reading: 0 };
  readonly bytes: Shares;
  readonly places: Shares;
  /** All callers whose application is not known. */
  readonly strangers = new Holder();
  readonly applications = new Parties(() => new Holder());
  readonly #networks = new Parties(() => new Holder());
  readonly #maxReading: number;

  constructor({ maxBufferedBytes, maxInFlight }: BudgetLimits) {
    this.bytes = new Shares(maxBufferedBytes);
    this.places = new Shares(maxInFlight);
    this.#maxReading = READING_PER_CALL * maxInFlight;
  }

  open(network: string): Share {
    const { reading } = this;
    if (reading.size >= this.#maxReading && reading.first !== undefined) this.#giveWay(reading.first);
    const share = new Share(this, this.strangers, this.#networks.of(network));
    reading.add(share);
    return share;
  }

  /** Whether there is room, if need be after others have given way. */
  makeRoom(bytes: number, wanted: Share): boolean {
    while (!this.bytes.hasRoom(bytes)) {
      const isWithin = this.bytes.isWithinShare(wanted.party.bytes, bytes);
      const request = this.#readingVictim(wanted, isWithin);
      const victim = request ?? (isWithin ? this.#runningVictim(wanted) : undefined);
      if (victim === undefined) {
        this.refusals.bytes += 1;
        return false;
      }
      this.#giveWay(victim);
    }
    return true;
  }

  hasPlace(party: Holder): boolean {
    const hasPlace = this.places.isOpenTo(party.places);
    if (!hasPlace) this.refusals.inFlight += 1;
    return hasPlace;
  }

  /**
   * The oldest request of the network that holds most: for a call, unless it is its own application that has too much; for
   * a request of a network that holds less, or a younger one of the same.
   */
  #readingVictim(wanted: Share, isWithin: boolean): Share | undefined {
    const isForCall = wanted.network === undefined;
    if (isForCall && !isWithin && this.bytes.isWithinShare(this.strangers.bytes, 0)) return undefined;
    let victim: Share | undefined;
    let isOlder = true;
    for (let share = this.reading.first; share !== undefined; share = share.next) {
      if (share === wanted) isOlder = false;
      if (share === wanted || share.held === 0) continue;
      const isOwn = share.network === wanted.network;
      const mayGo = isForCall || (isOwn ? isOlder : share.networkBytes > wanted.networkBytes);
      if (mayGo && share.networkBytes > (victim?.networkBytes ?? 0)) victim = share;
    }
    return victim;
  }

  /** The call that holds most, of the party that holds most. */
  #runningVictim(wanted: Share): Share | undefined {
    let victim: Share | undefined;
    for (let share = this.running.first; share !== undefined; share = share.next) {
      if (share.party === wanted.party || share.held === 0) continue;
      if (this.bytes.isWithinShare(share.party.bytes, 0)) continue;
      const more = share.party.bytes - (victim?.party.bytes ?? 0) || share.held - (victim?.held ?? 0);
      if (more > 0) victim = share;
    }
    return victim;
  }

  #giveWay(share: Share): void {
    if (share.isReading) this.refusals.reading += 1;
    else this.refusals.bytes += 1;
    share.evict();
  }
}

/** A reservation. A class, since every call has one: one object, no closures. */
class Share implements Reservation, Links<Share> {
  previous: Share | undefined;
  next: Share | undefined;
  held = 0;
  party: Holder;
  /** Undefined once its application is known. */
  network: Holder | undefined;
  readonly #account: Account;
  #state: "reading" | "inFlight" | "released" = "reading";
  #onEvicted: ((reason: RelayError) => void) | undefined;

  constructor(account: Account, party: Holder, network: Holder) {
    this.#account = account;
    this.party = party;
    this.network = network;
  }

  get owner(): unknown {
    return this.network ?? this.party;
  }

  get isReading(): boolean {
    return this.#state === "reading";
  }

  get networkBytes(): number {
    return this.network?.bytes ?? 0;
  }

  whenEvicted(listener: (reason: RelayError) => void): void {
    this.#onEvicted = listener;
  }

  reserve(bytes: number): boolean {
    if (this.#state === "released" || !this.#account.makeRoom(bytes, this)) return false;
    this.#take(bytes);
    return true;
  }

  giveBack(bytes: number): void {
    if (this.#state === "released") return;
    const { party, network } = this;
    this.held -= bytes;
    party.bytes = this.#account.bytes.giveBack(party.bytes, bytes);
    if (network !== undefined) network.bytes -= bytes;
  }

  begin(): boolean {
    const { party } = this;
    const account = this.#account;
    if (this.#state !== "reading" || !account.hasPlace(party)) return false;
    account.reading.remove(this);
    account.running.add(this);
    this.#state = "inFlight";
    party.places = account.places.take(party.places, 1);
    return true;
  }

  belongTo(applicationId: string): boolean {
    if (this.#state !== "inFlight") return false;
    const { held } = this;
    const account = this.#account;
    this.giveBack(held);
    this.party.places = account.places.giveBack(this.party.places, 1);
    this.party = account.applications.of(applicationId);
    this.network = undefined;
    const hasPlace = account.hasPlace(this.party);
    this.party.places = account.places.take(this.party.places, 1);
    this.#take(held);
    return hasPlace;
  }

  release(): void {
    if (this.#state === "released") return;
    const { party } = this;
    const account = this.#account;
    this.giveBack(this.held);
    if (this.#state === "inFlight") {
      party.places = account.places.giveBack(party.places, 1);
      account.running.remove(this);
    } else {
      account.reading.remove(this);
    }
    this.#state = "released";
  }

  /** Ends it: it gives way to others. */
  evict(): void {
    const { isReading } = this;
    this.release();
    this.#onEvicted?.(isReading ? overloaded() : evicted());
  }

  #take(bytes: number): void {
    const { party, network } = this;
    this.held += bytes;
    party.bytes = this.#account.bytes.take(party.bytes, bytes);
    if (network !== undefined) network.bytes += bytes;
  }
}

/** Room for bytes. */
export type Room = Pick<Reservation, "reserve">;

/** Counts bytes that a call holds from now on. Fails with OVERLOADED when there is no room for them. */
export function requireRoom(memory: Room, bytes: number): void {
  if (!memory.reserve(bytes)) throw overloaded();
}

/** The row of a call that had to give way. */
function evicted(): RelayError {
  return new RelayError(
    "OVERLOADED",
    "The relay had to end this call to make room for others; if it was to change something, check whether that was done before sending it again.",
  );
}

/** What streams leave behind in memory. */
export interface StreamGarbage {
  /** So many bytes were read and handed on. */
  add(bytes: number): void;
}

/** A collection takes a fraction of a millisecond then, and what waits for it is a small part of a relay's memory. */
const MAX_BYTES = 8 * 1024 * 1024;

/**
 * Runs a minor GC so that what streams have read does not pile up. V8 collects young objects when they fill its young
 * space, and does not count the buffers that they hold: without this, a fast download grows the process by fifty
 * megabytes before a buffer is freed.
 *
 * @param collect collects young objects, see `createYoungCollection()`.
 */
export function createStreamGarbage(collect: () => void): StreamGarbage {
  let waiting = 0;
  return {
    add(bytes) {
      waiting += bytes;
      if (waiting < MAX_BYTES) return;
      waiting = 0;
      collect();
    },
  };
}
