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

type Labels<Label extends string> = Readonly<Record<Label, string>>;

interface SeriesOptions<Label extends string> {
  readonly name: string;
  /** One sentence for people. */
  readonly help: string;
  readonly labels: readonly Label[];
  /** Series that start at 0, so that Prometheus sees the first event as an increase. */
  readonly expected?: ReadonlyArray<Labels<Label>>;
}

/**
 * Finds, or creates, what is counted for each set of labels. With this, all metrics of a call take 0.4 µs of its 62;
 * prom-client's own counters and histograms take 2.2.
 */
function createSeries<Label extends string, Cell>(
  { labels: names, expected = [] }: SeriesOptions<Label>,
  create: () => Cell,
) {
  const series = new Map<string, readonly [Labels<Label>, Cell]>();
  function cellOf(labels: Labels<Label>): Cell {
    let key = "";
    for (const name of names) key += `${labels[name]}\n`;
    const known = series.get(key);
    if (known !== undefined) return known[1];
    const cell = create();
    series.set(key, [labels, cell]);
    return cell;
  }
  for (const labels of expected) cellOf(labels);
  return { cellOf, all: () => [...series.values()] };
}

/** Counts by labels, which must come from small sets. */
export function createCounter<const Label extends string>(options: SeriesOptions<Label>) {
  const { cellOf, all } = createSeries(options, () => ({ value: 0 }));
  return {
    add(labels: Labels<Label>): void {
      cellOf(labels).value += 1;
    },
    read: () =>
      countsOf(
        options,
        all().map(([labels, { value }]) => ({ labels, value })),
      ),
  };
}

interface HistogramOptions<Label extends string> extends SeriesOptions<Label> {
  /** Upper bounds of the buckets in seconds, ascending; an unbounded bucket is added. */
  readonly bounds: readonly number[];
}

/** Durations by labels. */
export function createHistogram<const Label extends string>(options: HistogramOptions<Label>) {
  const { name, help, bounds } = options;
  // One count per bucket, not cumulative; the last bucket is unbounded.
  const { cellOf, all } = createSeries(options, () => ({ counts: [...bounds, 0].map(() => 0), sum: 0 }));
  return {
    observe(labels: Labels<Label>, ms: number): void {
      const cell = cellOf(labels);
      const seconds = ms / 1000;
      let bucket = 0;
      while (bucket < bounds.length && seconds > (bounds[bucket] as number)) bucket++;
      cell.counts[bucket] = (cell.counts[bucket] as number) + 1;
      cell.sum += seconds;
    },
    /** In the form of Prometheus: each bucket includes the smaller ones. */
    read(): Metric {
      const values: MetricValue[] = [];
      for (const [labels, { counts, sum }] of all()) {
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
    },
  };
}
