/**
 * A party gets more of what it never has to give back only while it holds less than so many times what is free. Alone
 * it may have eight ninths, of two each may have eight seventeenths, and something is left for the next one. These are
 * the dynamic thresholds of Choudhury and Hahne (1998), https://doi.org/10.1109/90.664262.
 */
const TIMES_FREE = 8;

/**
 * Most parties before idle ones are removed. Idle ones are kept up to this number: a Map that always changes is slow.
 */
const MAX_IDLE_PARTIES = 256;

/**
 * A limited resource shared among parties, in fair shares when it is scarce.
 *
 * Each party keeps the amount that it holds. This counts only how many parties hold anything, and the total.
 */
export class Shares {
  readonly limit: number;
  /** Held by all parties together. */
  total = 0;
  #parties = 0;

  constructor(limit: number) {
    this.limit = limit;
  }

  /** Whether `amount` is free. */
  hasRoom(amount: number): boolean {
    return this.total + amount <= this.limit;
  }

  /** Whether a party that holds `held` may take one more that it never has to give back. */
  isOpenTo(held: number): boolean {
    return held < TIMES_FREE * (this.limit - this.total);
  }

  /**
   * Whether a party that holds `held` stays within its equal share with `more`, whatever the others hold: for a
   * resource that can be taken back from parties over their share.
   */
  isWithinShare(held: number, more: number): boolean {
    return held + more <= this.limit / (held === 0 ? this.#parties + 1 : this.#parties);
  }

  /** Counts `amount` as taken; returns what the party holds now. */
  take(held: number, amount: number): number {
    if (held === 0 && amount > 0) this.#parties += 1;
    this.total += amount;
    return held + amount;
  }

  /** Counts `amount` as given back; returns what the party still holds. */
  giveBack(held: number, amount: number): number {
    if (held === amount && amount > 0) this.#parties -= 1;
    this.total -= amount;
    return held - amount;
  }
}

/** Parties by name. Idle ones are removed when there are too many. */
export class Parties<Party extends { readonly isIdle: boolean }> {
  readonly #create: () => Party;
  readonly #parties = new Map<string, Party>();

  constructor(create: () => Party) {
    this.#create = create;
  }

  /** Finds or creates a party; the same object for the same name while it is not idle. */
  of(name: string): Party {
    let party = this.#parties.get(name);
    if (party === undefined) {
      if (this.#parties.size >= MAX_IDLE_PARTIES) this.#forgetIdle();
      party = this.#create();
      this.#parties.set(name, party);
    }
    return party;
  }

  #forgetIdle(): void {
    for (const [name, { isIdle }] of this.#parties) if (isIdle) this.#parties.delete(name);
  }
}

/** Links in an entry of a {@link LinkedList}; only the list changes them. */
export interface Links<Entry> {
  previous: Entry | undefined;
  next: Entry | undefined;
}

/**
 * A doubly linked list in order of insertion, with removal from anywhere.
 *
 * A Map or Set would work as well, but every call is added and removed. V8 then allocates a new hash table every few
 * calls, and each old table points to the next. A table in the old generation keeps everything in later tables alive
 * until the next major GC, which made the garbage collector copy every request twice.
 */
export class LinkedList<Entry extends Links<Entry>> {
  first: Entry | undefined;
  size = 0;
  #last: Entry | undefined;

  add(entry: Entry): void {
    entry.previous = this.#last;
    if (this.#last === undefined) this.first = entry;
    else this.#last.next = entry;
    this.#last = entry;
    this.size++;
  }

  /** Removes an entry; does nothing when it is not in the list. */
  remove(entry: Entry): void {
    const { previous, next } = entry;
    if (previous === undefined && this.first !== entry) return;
    if (previous === undefined) this.first = next;
    else previous.next = next;
    if (next === undefined) this.#last = previous;
    else next.previous = previous;
    entry.previous = undefined;
    entry.next = undefined;
    this.size--;
  }
}
