/** One value of a metric, with its labels. */
interface MetricValue {
  readonly labels: Readonly<Record<string, string>>;
  readonly value: number;
  /** Where it differs from the metric's: buckets, sum and count of a histogram. */
  readonly metricName?: string;
}

/** One metric as it stands, in the form in which prom-client adds up and prints metrics; plain, so that it may be sent. */
export interface Metric {
  readonly name: string;
  /** One sentence for people. */
  readonly help: string;
  readonly type: "counter" | "gauge" | "histogram";
  /** How the values of several processes become one. */
  readonly aggregator: "sum" | "max" | "min" | "first";
  readonly values: readonly MetricValue[];
}

/** What a gauge shows. */
interface GaugeOptions {
  readonly name: string;
  readonly help: string;
  /** `sum` by default. */
  readonly aggregator?: Metric["aggregator"];
}

/** A value that goes up and down, read now. */
export function gaugeOf(options: GaugeOptions, value: number): Metric {
  return gaugesOf(options, [{ labels: {}, value }]);
}

/** Values of one gauge that labels tell apart. */
export function gaugesOf({ name, help, aggregator = "sum" }: GaugeOptions, values: readonly MetricValue[]): Metric {
  return { name, help, type: "gauge", aggregator, values };
}

/** A count that somebody else keeps; it only grows. */
export function countOf(options: Omit<GaugeOptions, "aggregator">, value: number): Metric {
  return countsOf(options, [{ labels: {}, value }]);
}

/** Counts of one metric that labels tell apart. */
export function countsOf({ name, help }: Omit<GaugeOptions, "aggregator">, values: readonly MetricValue[]): Metric {
  return { name, help, type: "counter", aggregator: "sum", values };
}

/** What a counter counts. */
interface CounterOptions<Label extends string> {
  readonly name: string;
  /** One sentence for people. */
  readonly help: string;
  readonly labels: readonly Label[];
  /** Shown from the start, so that the first one is seen as a growth. */
  readonly expected?: ReadonlyArray<Readonly<Record<Label, string>>>;
}

/** Counts by labels. */
interface Counter<Label extends string> {
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

/** What a histogram measures. */
export interface HistogramOptions {
  readonly name: string;
  /** One sentence for people. */
  readonly help: string;
  /** Upper bounds of the buckets in seconds, ascending; one without a bound is added. */
  readonly bounds: readonly number[];
}

/** Observations of one set of labels. */
export interface Observations {
  /** Of each bucket alone; the last one is without a bound. */
  readonly counts: number[];
  /** Seconds. */
  sum: number;
}

/** No observation yet. */
export function createObservations({ bounds }: Pick<HistogramOptions, "bounds">): Observations {
  return { counts: Array.from({ length: bounds.length + 1 }, () => 0), sum: 0 };
}

/**
 * Adds one observation. Plain numbers, and no look-up by labels: all metrics of a call take 0.03 µs, prom-client's
 * histograms and counters 2.2, of the 62 of a call.
 */
export function observe({ bounds }: Pick<HistogramOptions, "bounds">, into: Observations, ms: number): void {
  const seconds = ms / 1000;
  let bucket = 0;
  while (bucket < bounds.length && seconds > (bounds[bucket] as number)) bucket++;
  into.counts[bucket] = (into.counts[bucket] as number) + 1;
  into.sum += seconds;
}

/** The histogram as Prometheus has it: each bucket counts what is in the smaller ones, too. */
export function histogramOf(
  { name, help, bounds }: HistogramOptions,
  series: Iterable<readonly [labels: Readonly<Record<string, string>>, Observations]>,
): Metric {
  const values: MetricValue[] = [];
  for (const [labels, { counts, sum }] of series) {
    let count = 0;
    counts.forEach((own, bucket) => {
      count += own;
      const le = bucket < bounds.length ? String(bounds[bucket]) : "+Inf";
      values.push({ labels: { ...labels, le }, value: count, metricName: `${name}_bucket` });
    });
    values.push({ labels, value: sum, metricName: `${name}_sum` });
    values.push({ labels, value: count, metricName: `${name}_count` });
  }
  return { name, help, type: "histogram", aggregator: "sum", values };
}
