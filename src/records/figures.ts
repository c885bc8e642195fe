import { randomUUID } from "node:crypto";
import { setImmediate as nextTurn } from "node:timers/promises";
import { createSingleFlight } from "../lib/turns.js";
import { within } from "./list-calls.js";

/** Parts of a call's time. For a streamed answer, `total` is the time until its head. */
const FIGURE_PARTS = ["total", "relay", "queue", "token", "provider"] as const;
export type FigurePart = (typeof FIGURE_PARTS)[number];

/** What is counted of one call: whether it failed, and its times in milliseconds. */
export interface CountedCall {
  readonly isError: boolean;
  readonly times: Readonly<Record<FigurePart, number>>;
}

/** Number of calls, and a histogram of each part's duration. Of fixed size; two of them can be added. */
export interface Figures {
  count: number;
  errors: number;
  /** The histograms of all parts, one after the other. {@link lengthAt} gives the duration of a bucket. */
  readonly lengths: Float64Array;
}

/** Ratio of neighbouring buckets: a percentile is accurate to a tenth. */
const STEP = 2 ** (1 / 4);
/** Upper bound of the first bucket, in milliseconds. */
const SHORTEST_MS = 0.1;
/** Buckets per part: up to some twenty minutes. Longer durations go into the last one. */
const LENGTHS = 96;
const PER_STEP = 1 / Math.log(STEP);

/** Figures without a call. All are created here, so that V8 sees one shape on the hot path. */
export function emptyFigures(): Figures {
  return { count: 0, errors: 0, lengths: new Float64Array(FIGURE_PARTS.length * LENGTHS) };
}

/** Counts a call, on the hot path: with a Map per part it took twice as long and was recompiled every few seconds. */
export function addCall(figures: Figures, { isError, times }: CountedCall): void {
  figures.count += 1;
  if (isError) figures.errors += 1;
  const { lengths } = figures;
  addLength(lengths, 0, times.total);
  addLength(lengths, 1, times.relay);
  addLength(lengths, 2, times.queue);
  addLength(lengths, 3, times.token);
  addLength(lengths, 4, times.provider);
}

/** @param part index into {@link FIGURE_PARTS}. */
function addLength(lengths: Float64Array, part: number, ms: number): void {
  const at = part * LENGTHS + placeOf(ms);
  lengths[at] = (lengths[at] ?? 0) + 1;
}

export function addFigures(figures: Figures, others: Figures): void {
  figures.count += others.count;
  figures.errors += others.errors;
  // Runs eight times for each application and provider called in the last seconds; most buckets are empty.
  for (let at = 0; at < others.lengths.length; at += 1) {
    const count = others.lengths[at] as number;
    if (count !== 0) figures.lengths[at] = (figures.lengths[at] as number) + count;
  }
}

function placeOf(ms: number): number {
  if (!(ms > SHORTEST_MS)) return 0;
  return Math.min(LENGTHS - 1, Math.ceil(Math.log(ms / SHORTEST_MS) * PER_STEP));
}

/** The duration that a bucket stands for, in milliseconds: its midpoint, or 0 for the first bucket. Pure. */
function lengthAt(place: number): number {
  return place === 0 ? 0 : SHORTEST_MS * STEP ** (place - 0.5);
}

/** The histogram of one part. */
function lengthsOf({ lengths }: Figures, part: FigurePart): Float64Array {
  const from = FIGURE_PARTS.indexOf(part) * LENGTHS;
  return lengths.subarray(from, from + LENGTHS);
}

/** The nearest-rank percentile of a part, in milliseconds; undefined without calls. Pure. */
export function percentileOf(figures: Figures, part: FigurePart, share: number): number | undefined {
  if (figures.count === 0) return undefined;
  let left = Math.ceil(share * figures.count);
  const place = lengthsOf(figures, part).findIndex((count) => {
    left -= count;
    return left <= 0;
  });
  return place < 0 ? undefined : lengthAt(place);
}

/** The stored form: `[count, errors, [bucket, count, bucket, count, …] of each part]`. Pure. */
export function textFromFigures(figures: Figures): string {
  const pairsOf = (part: FigurePart) =>
    [...lengthsOf(figures, part)].flatMap((count, place) => (count === 0 ? [] : [place, count]));
  return JSON.stringify([figures.count, figures.errors, ...FIGURE_PARTS.map(pairsOf)]);
}

/** Reads the stored form. Pure. Throws for a text that is not JSON. */
export function figuresFromText(text: string): Figures {
  const [count, errors, ...histograms] = JSON.parse(text) as [number, number, ...number[][]];
  const figures = emptyFigures();
  figures.count = count;
  figures.errors = errors;
  for (const part of FIGURE_PARTS) {
    const pairs = histograms[FIGURE_PARTS.indexOf(part)] ?? [];
    const lengths = lengthsOf(figures, part);
    for (let at = 0; at < pairs.length; at += 2) lengths[pairs[at] as number] = pairs[at + 1] as number;
  }
  return figures;
}

/** Length of the period for which calls are counted together. */
export type FigureSpan = "MINUTE" | "HOUR";

export const SPAN_MS: Readonly<Record<FigureSpan, number>> = { MINUTE: 60_000, HOUR: 3_600_000 };

/** How long after its start a span is still written, since the store may have been unavailable. */
const WRITTEN_MS: Readonly<Record<FigureSpan, number>> = { MINUTE: 5 * 60_000, HOUR: 2 * 3_600_000 };

/** Spans that began before this are final: no process writes them any more, unless its clock is a whole span behind. */
export function settledBefore(span: FigureSpan, now: number): number {
  return now - WRITTEN_MS[span] - SPAN_MS[span];
}

/** Which calls are counted: all, those of one application, those to one provider, or those of one pair of the two. */
interface FigureSubject {
  readonly kind: "ALL" | "APPLICATION" | "PROVIDER" | "PAIR";
  /** The application's id, the provider's name, or {@link pairId}; empty for all. */
  readonly id: string;
}

/** Id of an application's calls to a provider. Neither part contains a space. */
export function pairId(applicationId: string, provider: string): string {
  return `${applicationId} ${provider}`;
}

/** What one process has counted in one span. */
export interface FigureRow extends FigureSubject {
  readonly span: FigureSpan;
  /** Milliseconds since the epoch. */
  readonly startAt: number;
  readonly figures: string;
}

/** Which figures to read. */
export interface FigureFilter {
  readonly span: FigureSpan;
  readonly kind: FigureSubject["kind"];
  /** Undefined for all of the kind. */
  readonly id: string | undefined;
  /** Milliseconds since the epoch. */
  readonly fromAt: number;
}

/** Keeps figures of calls. Every method rejects with RelayError STORE_UNAVAILABLE when the store cannot be used. */
export interface FigureStore {
  /** Writes what a process has counted of a span so far, replacing its earlier rows. @param writer names both. */
  put(writer: string, rows: readonly FigureRow[]): Promise<void>;
  /** Merges the rows of all processes for a span into one per subject. No process may still write the span. */
  merge(span: FigureSpan, startAt: number): Promise<void>;
  /** Rows ordered by subject and time. Read in pages, so that other work runs in between. */
  read(filter: FigureFilter): AsyncGenerator<FigureRow, void, undefined>;
  /** Deletes at most `limit` rows of a span that began before a time. Resolves to the number deleted. */
  deleteBefore(span: FigureSpan, time: number, limit: number): Promise<number>;
}

/** Options of {@link createFigureWriter}. */
interface FigureWriterOptions {
  readonly store: Pick<FigureStore, "put">;
  /** Milliseconds since the epoch. */
  readonly now: () => number;
  /** Called with the error when a write fails; the figures are written with the next ones. */
  readonly onFault: (error: unknown) => void;
}

/** Counts calls in memory and writes the figures in the background. */
export interface FigureWriter {
  /** Counts a call, in some microseconds. Never throws. */
  add(applicationId: string, provider: string | undefined, call: CountedCall): void;
  /** Stops the timer and writes what was counted, for at most two seconds. */
  close(): Promise<void>;
}

/** Most applications and providers counted separately per span and process, and most pairs; others count in ALL. */
const MAX_SUBJECTS = 500;
/** Often enough for figures of the last minutes. */
const WRITE_MS = 5000;
const CLOSE_MS = 2000;
/** Pairs added up, or rows written, before yielding. */
const BATCH = 200;

const ALL: FigureSubject = { kind: "ALL", id: "" };

interface Counted {
  readonly subject: FigureSubject;
  readonly figures: Figures;
}

/** Counts of one span that are still in memory. */
class Span {
  /** Its own rows: a span that comes round again, after the clock was set back, must not replace what was written. */
  readonly writer = randomUUID();
  readonly subjects = new Map<string, Counted>();
  /** The subjects changed since they were last written. */
  readonly changed = new Set<Counted>();
  /** How many of the subjects are pairs. */
  #pairs = 0;

  constructor(readonly startAt: number) {}

  add(subject: FigureSubject, figures: Figures): void {
    const key = `${subject.kind} ${subject.id}`;
    const known = this.subjects.get(key);
    if (known === undefined && !this.#hasRoom(subject)) return;
    const counted = known ?? { subject, figures: emptyFigures() };
    addFigures(counted.figures, figures);
    this.subjects.set(key, counted);
    this.changed.add(counted);
  }

  /** Pairs have a limit of their own: there are as many as applications times providers. */
  #hasRoom({ kind }: FigureSubject): boolean {
    if (kind !== "PAIR") return this.subjects.size - this.#pairs < MAX_SUBJECTS;
    if (this.#pairs >= MAX_SUBJECTS) return false;
    this.#pairs += 1;
    return true;
  }
}

/** Counts by minute and by hour, and writes both every five seconds: a killed process loses only seconds. */
export function createFigureWriter({ store, now, onFault }: FigureWriterOptions): FigureWriter {
  /** Spans that are being counted or still have to be written. */
  const spans: Record<FigureSpan, Span[]> = { MINUTE: [], HOUR: [] };
  /** Figures of this minute by application and provider: each call is counted once here, and its subjects later. */
  let fresh = new Map<string, Map<string | undefined, Figures>>();
  let minuteAt = 0;
  /** Past minutes that are not yet added up, with their start. */
  const setAside: Array<readonly [startAt: number, typeof fresh]> = [];

  function spanAt(span: FigureSpan, at: number): Span {
    const startAt = at - (at % SPAN_MS[span]);
    // After the clock is set back, a span may come round again.
    const known = spans[span].find((each) => each.startAt === startAt);
    if (known !== undefined) return known;
    const made = new Span(startAt);
    spans[span].push(made);
    return made;
  }

  function freshFor(applicationId: string, provider: string | undefined): Figures {
    const ofProviders = fresh.get(applicationId) ?? new Map<string | undefined, Figures>();
    const figures = emptyFigures();
    fresh.set(applicationId, ofProviders.set(provider, figures));
    return figures;
  }

  function putAside(): void {
    if (fresh.size > 0) setAside.push([minuteAt, fresh]);
    fresh = new Map();
  }

  async function addUp(): Promise<void> {
    putAside();
    let pairs = 0;
    for (const [startAt, ofApplications] of setAside.splice(0)) {
      for (const [applicationId, ofProviders] of ofApplications) {
        for (const [provider, figures] of ofProviders) {
          addTo(startAt, applicationId, provider, figures);
          pairs += 1;
          if (pairs % BATCH === 0) await nextTurn();
        }
      }
    }
  }

  function addTo(startAt: number, applicationId: string, provider: string | undefined, figures: Figures): void {
    for (const span of ["MINUTE", "HOUR"] as const) {
      const counted = spanAt(span, startAt);
      counted.add(ALL, figures);
      counted.add({ kind: "APPLICATION", id: applicationId }, figures);
      if (provider === undefined) continue;
      counted.add({ kind: "PROVIDER", id: provider }, figures);
      counted.add({ kind: "PAIR", id: pairId(applicationId, provider) }, figures);
    }
  }

  async function writeAll(): Promise<void> {
    await addUp();
    for (const span of ["MINUTE", "HOUR"] as const) {
      // An older span may have been merged, and would be counted twice. If the store stays unavailable, a few spans are
      // lost.
      spans[span] = spans[span].filter(({ startAt }) => startAt >= now() - WRITTEN_MS[span]);
      for (const each of spans[span]) await write(span, each);
      const rest = spans[span].filter((each, at, all) => at === all.length - 1 || each.changed.size > 0);
      spans[span] = rest.slice(-5);
    }
  }

  async function write(span: FigureSpan, { writer, startAt, changed }: Span): Promise<void> {
    const all = [...changed];
    for (let from = 0; from < all.length; from += BATCH) {
      const batch = all.slice(from, from + BATCH);
      for (const counted of batch) changed.delete(counted);
      const rows = batch.map(({ subject, figures }) => ({
        ...{ span, startAt, ...subject },
        figures: textFromFigures(figures),
      }));
      try {
        await store.put(writer, rows);
      } catch (error) {
        for (const counted of batch) changed.add(counted);
        onFault(error);
        return;
      }
    }
  }

  const writing = createSingleFlight(writeAll);
  const timer = setInterval(() => void writing.run(), WRITE_MS).unref();

  return {
    add(applicationId, provider, call) {
      const at = now();
      const startAt = at - (at % SPAN_MS.MINUTE);
      if (startAt !== minuteAt) putAside();
      minuteAt = startAt;
      const known = fresh.get(applicationId)?.get(provider);
      addCall(known ?? freshFor(applicationId, provider), call);
    },
    async close() {
      clearInterval(timer);
      await within(
        (async () => {
          await writing.current;
          await writing.run();
        })(),
        CLOSE_MS,
      );
    },
  };
}
