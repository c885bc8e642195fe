/** One value of a metric, with its labels. */
export interface MetricValue {
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
export interface GaugeOptions {
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
