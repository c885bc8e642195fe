import { cpus, totalmem } from "node:os";
import type { Figures } from "./measure.js";
import { medianOf, quantileOf } from "./median.js";
import { isPinned } from "./pinned-process.js";
import { comparedTo, POINTS, type Point, type SubjectName } from "./points.js";

/** One subject at one point in one round. */
export interface Sample {
  readonly round: number;
  readonly point: string;
  readonly subject: SubjectName;
  readonly figures: Figures;
}

/** Medians over the rounds. */
export interface SummaryRow {
  readonly point: string;
  readonly subject: SubjectName;
  readonly cpuUs: number;
  readonly callersCpuUs: number;
  /** Median of the ratios of each round, and their quartiles; undefined when the base was not measured. */
  readonly ratio: number | undefined;
  readonly ratioLow: number | undefined;
  readonly ratioHigh: number | undefined;
  readonly base: string;
  readonly target: number | undefined;
  readonly callsPerSecond: number;
  /** Over calling the provider directly, where that was measured; otherwise the whole time. */
  readonly addedP50Us: number;
  readonly addedP99Us: number;
  readonly peakMib: number;
  /** How many of the rounds were disturbed. */
  readonly disturbed: number;
}

/** What the run found, and on which machine. */
export interface Summary {
  readonly machine: Readonly<Record<string, string | number | boolean>>;
  readonly at: string;
  readonly rounds: number;
  readonly seconds: number;
  readonly rows: readonly SummaryRow[];
  readonly loopHoldMs: LoopHolds;
  readonly compared?: { readonly commit: string; readonly points: readonly Comparison[] };
}

/** What a call of this relay costs, as a ratio to that of another commit. */
export interface Comparison {
  readonly point: string;
  readonly subject: SubjectName;
  /** Quartiles over the rounds. */
  readonly low: number;
  readonly median: number;
  readonly high: number;
}

/** Longest hold of an event loop in milliseconds, by point and subject. */
export type LoopHolds = Readonly<Record<string, Readonly<Record<string, number>>>>;

/** The machine as far as figures depend on it. */
export function machine(): Summary["machine"] {
  const [cpu] = cpus();
  return {
    cpu: cpu?.model ?? "unknown",
    cores: cpus().length,
    memoryGib: Math.round(totalmem() / 2 ** 30),
    os: `${process.platform} ${process.arch}`,
    node: process.version,
    pinned: isPinned(),
  };
}

/** Makes the rows of all samples, in the order of the points. */
export function rowsFrom(samples: readonly Sample[]): SummaryRow[] {
  return POINTS.flatMap((point) =>
    [...point.subjects, ...point.subjects.map(comparedTo)].flatMap((subject) => {
      const own = samples.filter((sample) => sample.point === point.name && sample.subject === subject);
      return own.length === 0 ? [] : [rowFrom(point, subject, own, samples)];
    }),
  );
}

function rowFrom(point: Point, subject: SubjectName, own: readonly Sample[], all: readonly Sample[]): SummaryRow {
  const median = (value: (figures: Figures) => number, of = own) =>
    medianOf(of.map(({ figures }) => value(figures))) ?? 0;
  const direct = all.filter((sample) => sample.point === point.name && sample.subject === "direct");
  const added = (value: (figures: Figures) => number) =>
    subject === "direct" ? median(value) : median(value) - median(value, direct);
  const ratios = own.flatMap((sample) => ratioOf(sample, point, all));
  return {
    point: point.name,
    subject,
    cpuUs: median(({ cpuUs }) => cpuUs),
    callersCpuUs: median(({ callersCpuUs }) => callersCpuUs),
    ratio: medianOf(ratios),
    ratioLow: quantileOf(ratios, 0.25),
    ratioHigh: quantileOf(ratios, 0.75),
    base: `${point.base.subject}${point.base.point === point.name ? "" : ` ${point.base.point}`}`,
    target: subject.startsWith("relay") ? point.target : undefined,
    callsPerSecond: median(({ callsPerSecond }) => callsPerSecond),
    addedP50Us: added(({ p50Us }) => p50Us),
    addedP99Us: added(({ p99Us }) => p99Us),
    peakMib: Math.max(...own.map(({ figures }) => figures.peakMib)),
    disturbed: own.filter(({ figures }) => figures.disturbed).length,
  };
}

/** The ratio of every round, point by point. */
export function comparisonFrom(samples: readonly Sample[]): Comparison[] {
  return POINTS.flatMap((point) =>
    point.subjects.flatMap((subject) => {
      const base = { point: point.name, subject: comparedTo(subject) };
      const own = samples.filter((sample) => sample.point === point.name && sample.subject === subject);
      const ratios = own.flatMap((sample) => ratioOf(sample, { ...point, base }, samples));
      const [low, median, high] = [0.25, 0.5, 0.75].map((part) => quantileOf(ratios, part));
      return low === undefined || median === undefined || high === undefined
        ? []
        : [{ point: point.name, subject, low, median, high }];
    }),
  );
}

function ratioOf(sample: Sample, { base }: Point, all: readonly Sample[]): number[] {
  const found = all.find(
    ({ round, point, subject }) => round === sample.round && point === base.point && subject === base.subject,
  );
  return found === undefined ? [] : [sample.figures.cpuUs / found.figures.cpuUs];
}
