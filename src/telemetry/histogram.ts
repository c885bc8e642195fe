import type { Metric, MetricValue } from "./metric.js";

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

/** Adds one observation. Plain numbers, and no look-up by labels: it is done several times for each call. */
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
