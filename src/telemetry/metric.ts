/** One value of a metric, with its labels. */
interface MetricValue {
  readonly labels: Readonly<Record<string, string>>;
  readonly value: number;
  /** Set where it differs from the metric's name: buckets, sum and count of a histogram. */
  readonly metricName?: string;
}

/**
 * A snapshot of one metric, in the form that prom-client aggregates and prints. Plain data, so it can be sent between
 * processes.
 */
export interface Metric {
  readonly name: string;
  /** One sentence for humans. */
  readonly help: string;
  readonly type: "counter" | "gauge" | "histogram";
  /** How the values of several processes are combined. */
  readonly aggregator: "sum" | "max" | "min" | "first";
  readonly values: readonly MetricValue[];
}

interface GaugeOptions {
  readonly name: string;
  readonly help: string;
  /** `sum` by default. */
  readonly aggregator?: Metric["aggregator"];
}

/** A gauge with one value. */
export function gaugeOf(options: GaugeOptions, value: number): Metric {
  return gaugesOf(options, [{ labels: {}, value }]);
}

/** A gauge with one value per set of labels. */
export function gaugesOf({ name, help, aggregator = "sum" }: GaugeOptions, values: readonly MetricValue[]): Metric {
  return { name, help, type: "gauge", aggregator, values };
}

/** A counter with one value that is kept elsewhere; it only grows. */
export function countOf(options: Omit<GaugeOptions, "aggregator">, value: number): Metric {
  return countsOf(options, [{ labels: {}, value }]);
}

/** A counter with one value per set of labels. */
export function countsOf({ name, help }: Omit<GaugeOptions, "aggregator">, values: readonly MetricValue[]): Metric {
  return { name, help, type: "counter", aggregator: "sum", values };
}

interface CounterOptions<Label extends string> {
  readonly name: string;
  /** One sentence for people. */
  readonly help: string;
  readonly labels: readonly Label[];
  /** Series that start at 0, so that Prometheus sees the first event as an increase. */
  readonly expected?: ReadonlyArray<Readonly<Record<Label, string>>>;
}

/**
 * Most series of one counter. Labels come from far smaller sets; if one grew unexpectedly, it must not exhaust the
 * memory of the relay or of the system that scrapes it.
 */
const MAX_SERIES = 5000;

/** Label value of series beyond the limit, and of values outside a known set. */
export const OTHER = "other";

/** Counts by labels. For rare events: each `add()` builds a key from the labels. */
export function createCounter<const Label extends string>(options: CounterOptions<Label>) {
  const series = new Map<string, { readonly labels: Readonly<Record<string, string>>; value: number }>();
  for (const labels of options.expected ?? []) series.set(keyOf(options, labels), { labels, value: 0 });
  const others = Object.fromEntries(options.labels.map((name) => [name, OTHER])) as Record<Label, string>;
  return {
    add(labels: Readonly<Record<Label, string>>): void {
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

export interface HistogramOptions {
  readonly name: string;
  /** One sentence for people. */
  readonly help: string;
  /** Upper bounds of the buckets in seconds, ascending; an unbounded bucket is added. */
  readonly bounds: readonly number[];
}

/** Observations for one set of labels. */
export interface Observations {
  /** One count per bucket, not cumulative; the last bucket is unbounded. */
  readonly counts: number[];
  /** Seconds. */
  sum: number;
}

export function createObservations({ bounds }: Pick<HistogramOptions, "bounds">): Observations {
  return { counts: Array.from({ length: bounds.length + 1 }, () => 0), sum: 0 };
}

/**
 * Adds one observation. Uses plain numbers and no look-up by labels: all metrics of a call take 0.03 µs of its 62,
 * where prom-client's histograms and counters take 2.2.
 */
export function observe({ bounds }: Pick<HistogramOptions, "bounds">, into: Observations, ms: number): void {
  const seconds = ms / 1000;
  let bucket = 0;
  while (bucket < bounds.length && seconds > (bounds[bucket] as number)) bucket++;
  into.counts[bucket] = (into.counts[bucket] as number) + 1;
  into.sum += seconds;
}

/** A histogram in the form of Prometheus: each bucket includes the smaller ones. */
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
