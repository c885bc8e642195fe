import { LinkedList, type Links, Parties, Shares } from "../lib/shares.js";
import { overloaded, RelayError } from "../model/errors.js";

/** Limits for all calls together. */
interface BudgetLimits {
  /** Concurrent calls. */
  readonly maxInFlight: number;
  /** Bytes of all buffered request and answer bodies together. */
  readonly maxBufferedBytes: number;
}

/** Requests that may be read at once, per allowed call in flight: many connections may send one at the same moment. */
const READING_PER_CALL = 4;

/** One call's share of the budget, from its first byte until its answer is sent. */
export interface Reservation {
  /** The party charged for it: one object per application, or per network until the application is known. */
  readonly owner: unknown;
  /**
   * Sets the function that is called on eviction, replacing any earlier one. By then the reservation is released.
   *
   * A method rather than a property: V8 allocates a closure that is assigned to a property in the old generation. All
   * that it reaches, the whole request, would be promoted with it and kept until the next full GC.
   */
  whenEvicted(listener: (reason: RelayError) => void): void;
  /**
   * Charges bytes that the call holds from now on. False, with nothing charged, when the budget has no room for them.
   */
  reserve(bytes: number): boolean;
  /** Returns bytes that are not held after all. */
  giveBack(bytes: number): void;
  /** Makes it a call in flight, once its request is read. False when too many are in flight. */
  begin(): boolean;
  /**
   * Charges it to its application, once the call is authenticated. False when that already has its share of the places.
   */
  belongTo(applicationId: string): boolean;
  /** Returns everything. Idempotent. */
  release(): void;
}

/** Limits calls and memory, so that the relay answers OVERLOADED instead of running out of memory. */
export interface Budget {
  /**
   * Opens a reservation for a request whose body is not read yet.
   *
   * @param network the client's network, see `clientNetworkOf`: the caller is not known yet.
   */
  open(network: string): Reservation;
  readonly inFlight: number;
  readonly bufferedBytes: number;
  /** Counts of refusals since the start. */
  readonly refusals: BudgetRefusals;
}

/** How often there was no room, by cause. */
interface BudgetRefusals {
  /** Too many calls at once. */
  readonly inFlight: number;
  /** No room for the bytes of a body; includes calls in flight that were evicted for another application. */
  readonly bytes: number;
  /** A request that was being read was evicted for another one. */
  readonly reading: number;
}

/**
 * Creates the budget of one process, which limits calls in flight and buffered bytes.
 *
 * A request counts as a call in flight only once it is read: clients that send one byte a second would otherwise keep
 * everybody else out (threats I15). A request that is still being read can be evicted. An honest client's is read in no
 * time, so the oldest one is evicted when there are too many, or when a younger one or a call needs room.
 *
 * Places and bytes are shared fairly. Each application is a party; all callers whose application is not known yet form
 * one party together. A call that was sent cannot be undone, so no party gets the last places while it holds many. When
 * no bytes are left, the largest call of the application that holds most is evicted.
 */
export function createBudget(limits: BudgetLimits): Budget {
  return new Account(limits);
}

/** A party that holds something: an application, the callers of one network, or all unknown callers. */
class Holder {
  bytes = 0;
  places = 0;

  get isIdle(): boolean {
    return this.bytes === 0 && this.places === 0;
  }
}

/** The totals over all reservations. */
class Account implements Budget {
  /** Requests being read, oldest first. */
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

  get inFlight(): number {
    return this.places.total;
  }

  get bufferedBytes(): number {
    return this.bytes.total;
  }

  open(network: string): Share {
    const { reading } = this;
    if (reading.size >= this.#maxReading && reading.first !== undefined) this.#giveWay(reading.first);
    const share = new Share(this, this.strangers, this.#networks.of(network));
    reading.add(share);
    return share;
  }

  /** Whether there is room, evicting others if need be. */
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
   * Picks the request to evict: the oldest of the network that holds most. A call may evict any request, unless its own
   * application is over its share while the unknown callers are within theirs. A request may evict those of a network
   * that holds more than its own, and older ones of its own network.
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

  /** Picks the call to evict: the largest of the party that holds most, if that party is over its share. */
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

  /** Releases it to make room for others, and notifies its listener. */
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

/** Where bytes are charged. */
export type Room = Pick<Reservation, "reserve">;

/** Charges bytes that a call holds from now on. Fails with OVERLOADED when there is no room for them. */
export function requireRoom(memory: Room, bytes: number): void {
  if (!memory.reserve(bytes)) throw overloaded();
}

/** The error of a call that was evicted. */
function evicted(): RelayError {
  return new RelayError(
    "OVERLOADED",
    "The relay had to end this call to make room for others; if the call changes something, check whether it was done before sending it again.",
  );
}

/** Tracks the buffers that streams leave behind in memory. */
export interface StreamGarbage {
  /** Reports bytes that were read and passed on. */
  add(bytes: number): void;
}

/**
 * Bytes between two collections: each takes a fraction of a millisecond, and the garbage stays a small part of memory.
 */
const MAX_BYTES = 8 * 1024 * 1024;

/**
 * Runs a minor GC so that stream buffers do not pile up. V8 collects its young generation when that is full, and does
 * not count the buffers that young objects own: without this, a fast download grows the process by fifty megabytes
 * before a buffer is freed.
 *
 * @param collect runs a minor GC, see `createYoungCollection()`.
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
