/**
 * What is never taken back from a party is given to it only while it holds less than so many times what is free: alone it
 * may have eight ninths, of two each may have eight seventeenths, and something is left for whoever comes next. These are
 * the dynamic thresholds of Choudhury and Hahne (1998), https://doi.org/10.1109/90.664262.
 */
const TIMES_FREE = 8;

/** As many parties are kept although they hold nothing: a Map that always changes is slow. */
const MAX_IDLE_PARTIES = 256;

/**
 * Something limited that is shared out among parties: there is never more of it, and no party gets more than its share
 * while others want some.
 *
 * What a party holds is kept by the party: this only counts how many hold anything, and how much all of them do.
 */
export class Shares {
  readonly limit: number;
  /** What all parties hold. */
  total = 0;
  #parties = 0;

  constructor(limit: number) {
    this.limit = limit;
  }

  /** Whether so much is left. */
  hasRoom(amount: number): boolean {
    return this.total + amount <= this.limit;
  }

  /** Whether a party that holds so much may take one more and keep it for as long as it likes. */
  isOpenTo(held: number): boolean {
    return held < TIMES_FREE * (this.limit - this.total);
  }

  /**
   * Whether a party that holds so much stays within its share with more, whatever the others hold: for what can be taken
   * back from those that have more than theirs.
   */
  isWithinShare(held: number, more: number): boolean {
    return held + more <= this.limit / (held === 0 ? this.#parties + 1 : this.#parties);
  }

  /** Counts what a party takes; returns what it holds now. */
  take(held: number, amount: number): number {
    if (held === 0 && amount > 0) this.#parties += 1;
    this.total += amount;
    return held + amount;
  }

  /** Counts what a party gives back; returns what it still holds. */
  giveBack(held: number, amount: number): number {
    if (held === amount && amount > 0) this.#parties -= 1;
    this.total -= amount;
    return held - amount;
  }
}

/** The parties by name. Those that hold nothing are forgotten when there are too many. */
export class Parties<Party extends { readonly isIdle: boolean }> {
  readonly #create: () => Party;
  readonly #parties = new Map<string, Party>();

  constructor(create: () => Party) {
    this.#create = create;
  }

  /** The same object for the same name, for as long as it holds anything. */
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

/** What an entry of a {@link LinkedList} has; the list's own to change. */
export interface Links<Entry> {
  previous: Entry | undefined;
  next: Entry | undefined;
}

/**
 * Entries in the order they came, each of which may leave from anywhere.
 *
 * A Map or Set would do as much, but every call enters and leaves. V8 makes a new table for one of those every few
 * calls, and each old table points to the next: one that has become old keeps alive, until the next full collection,
 * all that ever stood in later ones. That made the collector copy every request twice.
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

  /** Takes an entry out; does nothing when it is in no list. */
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
