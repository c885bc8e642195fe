/**
 * Something limited that is shared out among parties. Whoever is alone may have all of it; of several each may have as
 * much as all others, and what one does not want is for the others.
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

  /** Whether a party that holds so much stays within its share with more, whatever the others hold. */
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
