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
