/** What is worked on, and how. */
export interface SlotsOptions<Item> {
  /** Items at once. */
  readonly most: number;
  /** Takes at most so many items that nobody else works on; none when there are none. */
  readonly take: (count: number) => Promise<readonly Item[]>;
  readonly run: (item: Item) => Promise<void>;
  /** Hears of what `take` or `run` rejects with; the item is left to whoever takes it next. */
  readonly onFault: (error: unknown) => void;
}

/** Work of which only so much is done at once. */
export interface Slots {
  /** Takes items until there are none or no slot is free; a slot that becomes free does so by itself. Never throws. */
  fill(): void;
  /** Takes no more; resolves when what was taken is done. */
  close(): Promise<void>;
}

/** Takes items in one go at a time, so that two never ask for the same free slot. */
export function createSlots<Item>({ most, take, run, onFault }: SlotsOptions<Item>): Slots {
  const running = new Set<Promise<void>>();
  let taking = Promise.resolve();
  let isTaking = false;
  let isWanted = false;
  let isClosed = false;

  async function takeAll(): Promise<void> {
    isTaking = true;
    try {
      while (isWanted && !isClosed && running.size < most) {
        isWanted = false;
        for (const item of await take(most - running.size)) start(item);
      }
    } catch (error) {
      onFault(error);
    } finally {
      isTaking = false;
    }
  }

  function start(item: Item): void {
    const work = run(item)
      .catch(onFault)
      .finally(() => {
        running.delete(work);
        fill();
      });
    running.add(work);
  }

  function fill(): void {
    isWanted = true;
    if (!isTaking) taking = takeAll();
  }

  return {
    fill,
    async close() {
      isClosed = true;
      await taking;
      await Promise.all(running);
    },
  };
}
