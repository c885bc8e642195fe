import { countsOf, type Metric } from "./metric.js";

/** What a counter counts. */
export interface CounterOptions<Label extends string> {
  readonly name: string;
  /** One sentence for people. */
  readonly help: string;
  readonly labels: readonly Label[];
  /** Shown from the start, so that the first one is seen as a growth. */
  readonly expected?: ReadonlyArray<Readonly<Record<Label, string>>>;
}

/** Counts by labels. */
export interface Counter<Label extends string> {
  add(labels: Readonly<Record<Label, string>>): void;
  read(): Metric;
}

/**
 * Series of one counter. The sets that labels come from are far smaller; one that grew all the same must not take the
 * memory of the relay, and of whoever reads its metrics.
 */
const MAX_SERIES = 5000;

/** What stands in each label of what is counted together, and in one whose value is of no known set. */
export const OTHER = "other";

/** Nothing counted yet. For what happens seldom: each `add()` makes a key of the labels. */
export function createCounter<const Label extends string>(options: CounterOptions<Label>): Counter<Label> {
  const series = new Map<string, { readonly labels: Readonly<Record<string, string>>; value: number }>();
  for (const labels of options.expected ?? []) series.set(keyOf(options, labels), { labels, value: 0 });
  const others = Object.fromEntries(options.labels.map((name) => [name, OTHER])) as Record<Label, string>;
  return {
    add(labels) {
      const key = keyOf(options, labels);
      const counted = series.size < MAX_SERIES || series.has(key) ? labels : others;
      const countedKey = counted === labels ? key : keyOf(options, others);
      const cell = series.get(countedKey) ?? { labels: counted, value: 0 };
      cell.value += 1;
      series.set(countedKey, cell);
    },
    read: () =>
      countsOf(
        options,
        [...series.values()].map(({ labels, value }) => ({ labels, value })),
      ),
  };
}

function keyOf<Label extends string>({ labels: names }: CounterOptions<Label>, labels: Record<Label, string>): string {
  return names.map((name) => labels[name]).join("\n");
}
