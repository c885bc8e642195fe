import { setImmediate as nextTurn } from "node:timers/promises";
import { within } from "./list-calls.js";

/** Parts of a call's time. `total` of a streamed answer is the time until its head. */
const FIGURE_PARTS = ["total", "relay", "queue", "token", "provider"] as const;
export type FigurePart = (typeof FIGURE_PARTS)[number];

/** What counts of one call: how it ended, and its times in milliseconds. */
export interface CountedCall {
  readonly isError: boolean;
  readonly times: Readonly<Record<FigurePart, number>>;
}

/** Counts of calls, and how long their parts took. Small whatever their number; two of them add up. */
export interface Figures {
  count: number;
  errors: number;
  /** For each part in turn, how often each of some lengths of time was seen, in the order of {@link lengthAt}. */
  readonly lengths: Float64Array;
}

/** Neighbouring lengths are apart by this factor: a percentile is right to a tenth. */
const STEP = 2 ** (1 / 4);
/** The shortest length that is told apart, in milliseconds. */
const SHORTEST_MS = 0.1;
/** Up to some twenty minutes; what takes longer counts as that. */
const LENGTHS = 96;
const PER_STEP = 1 / Math.log(STEP);

/** No calls. All are made here, so that they have one shape: each call counts in one. */
export function emptyFigures(): Figures {
  return { count: 0, errors: 0, lengths: new Float64Array(FIGURE_PARTS.length * LENGTHS) };
}

/** Counts a call. On every call: with a Map for each part it took twice as long, and was compiled anew every few seconds. */
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

/** @param part its place among {@link FIGURE_PARTS}. */
function addLength(lengths: Float64Array, part: number, ms: number): void {
  const at = part * LENGTHS + placeOf(ms);
  lengths[at] = (lengths[at] ?? 0) + 1;
}

/** Adds others to figures. */
export function addFigures(figures: Figures, others: Figures): void {
  figures.count += others.count;
  figures.errors += others.errors;
  // Eight times for each application and provider that was called in the last seconds; most places are empty.
  for (let at = 0; at < others.lengths.length; at += 1) {
    const count = others.lengths[at] as number;
    if (count !== 0) figures.lengths[at] = (figures.lengths[at] as number) + count;
  }
}

function placeOf(ms: number): number {
  if (!(ms > SHORTEST_MS)) return 0;
  return Math.min(LENGTHS - 1, Math.ceil(Math.log(ms / SHORTEST_MS) * PER_STEP));
}

/** What counts at a place, in milliseconds: the middle of it, and nothing for what is too short to be told. Pure. */
function lengthAt(place: number): number {
  return place === 0 ? 0 : SHORTEST_MS * STEP ** (place - 0.5);
}

/** The lengths of one part. */
function lengthsOf({ lengths }: Figures, part: FigurePart): Float64Array {
  const from = FIGURE_PARTS.indexOf(part) * LENGTHS;
  return lengths.subarray(from, from + LENGTHS);
}

/** The nearest-rank percentile of a part, in milliseconds; undefined where there was no call. Pure. */
export function percentileOf(figures: Figures, part: FigurePart, share: number): number | undefined {
  if (figures.count === 0) return undefined;
  let left = Math.ceil(share * figures.count);
  const place = lengthsOf(figures, part).findIndex((count) => {
    left -= count;
    return left <= 0;
  });
  return place < 0 ? undefined : lengthAt(place);
}

/** As it is stored: `[count, errors, [place, count, place, count, …] of each part]`. Pure. */
export function textFromFigures(figures: Figures): string {
  const pairsOf = (part: FigurePart) =>
    [...lengthsOf(figures, part)].flatMap((count, place) => (count === 0 ? [] : [place, count]));
  return JSON.stringify([figures.count, figures.errors, ...FIGURE_PARTS.map(pairsOf)]);
}

/** The other way round. Pure. Throws for a text that is none. */
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

/** A length of time for which calls are counted together. */
export type FigureSpan = "MINUTE" | "HOUR";

export const SPAN_MS: Readonly<Record<FigureSpan, number>> = { MINUTE: 60_000, HOUR: 3_600_000 };

/** How long after its beginning a process writes what it has counted in a span: a store may have been away. */
const WRITTEN_MS: Readonly<Record<FigureSpan, number>> = { MINUTE: 5 * 60_000, HOUR: 2 * 3_600_000 };

/** Spans that began before are written by no process any more whose clock is less than a span behind. */
export function settledBefore(span: FigureSpan, now: number): number {
  return now - WRITTEN_MS[span] - SPAN_MS[span];
}

/** Whose calls are counted: of all, of one application, to one provider, or of the one to the other. */
interface FigureSubject {
  readonly kind: "ALL" | "APPLICATION" | "PROVIDER" | "PAIR";
  /** The application's id or the provider's name; of a pair {@link pairId}; empty for all. */
  readonly id: string;
}

/** Names an application's calls to a provider. Neither has a space in it. */
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
  /** Undefined: of every one of the kind. */
  readonly id: string | undefined;
  /** Milliseconds since the epoch. */
  readonly fromAt: number;
}

/** Keeps figures of calls. Every method rejects with RelayError STORE_UNAVAILABLE when the store cannot be used. */
export interface FigureStore {
  /** Writes what a process has counted so far, in the place of what it had before. @param writer names the process. */
  put(writer: string, rows: readonly FigureRow[]): Promise<void>;
  /** Makes one row of what processes have counted in a span, for each subject; none of them may still write it. */
  merge(span: FigureSpan, startAt: number): Promise<void>;
  /** In the order of their subjects and times; some at a time, so that others are served in between. */
  read(filter: FigureFilter): AsyncGenerator<FigureRow, void, undefined>;
  /** Forgets those of a span that began before a time; at most `limit`. Resolves to how many. */
  deleteBefore(span: FigureSpan, time: number, limit: number): Promise<number>;
}

/** What counting calls needs. */
interface FigureWriterOptions {
  readonly store: Pick<FigureStore, "put">;
  /** Names this process among those that share the store: never used again. */
  readonly writer: string;
  /** Milliseconds since the epoch. */
  readonly now: () => number;
  /** Called with what could not be written; it is written with the next figures. */
  readonly onFault: (error: unknown) => void;
}

/** Counts calls beside serving them. */
export interface FigureWriter {
  /** Takes a call in, in some microseconds. Never throws. */
  add(applicationId: string, provider: string | undefined, call: CountedCall): void;
  /** Writes what was counted, for at most two seconds. */
  close(): Promise<void>;
}

/** Applications and providers that a process tells apart in one span, and so many pairs of them; the others count among all. */
const MAX_SUBJECTS = 500;
/** Soon enough for a figure of the last minutes. */
const WRITE_MS = 5000;
const CLOSE_MS = 2000;
/** Pairs that are added up, and rows that are written, at once. */
const BATCH = 200;

const ALL: FigureSubject = { kind: "ALL", id: "" };

/** Whose calls are added up. */
interface CalledPair {
  readonly applicationId: string;
  readonly provider: string | undefined;
}

/** What is counted of one span that has not ended. */
class Span {
  readonly subjects = new Map<string, { readonly subject: FigureSubject; readonly figures: Figures }>();
  /** Those that have changed since they were written. */
  readonly changed = new Set<string>();
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
    this.changed.add(key);
  }

  /** Pairs take no room from others: they are as many as applications times providers. */
  #hasRoom({ kind }: FigureSubject): boolean {
    if (kind !== "PAIR") return this.subjects.size - this.#pairs < MAX_SUBJECTS;
    if (this.#pairs >= MAX_SUBJECTS) return false;
    this.#pairs += 1;
    return true;
  }
}

/** Counts by minute and by hour, and writes both again and again: a process that is killed loses seconds. */
export function createFigureWriter({ store, writer, now, onFault }: FigureWriterOptions): FigureWriter {
  /** Those that are counted, and those that are still to be written. */
  const spans: Record<FigureSpan, Span[]> = { MINUTE: [], HOUR: [] };
  /** Of this minute, by application and provider: each call counts once, and what it belongs to is added up later. */
  let fresh = new Map<string, Map<string | undefined, Figures>>();
  let minuteAt = 0;
  /** Of minutes that are over, with when they began: not added up yet. */
  const setAside: Array<readonly [startAt: number, typeof fresh]> = [];
  let writing: Promise<void> | undefined;

  function spanAt(span: FigureSpan, at: number): Span {
    const startAt = at - (at % SPAN_MS[span]);
    // A clock that was set back comes again to one that has been counted.
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
          addTo(startAt, { applicationId, provider }, figures);
          pairs += 1;
          if (pairs % BATCH === 0) await nextTurn();
        }
      }
    }
  }

  function addTo(startAt: number, { applicationId, provider }: CalledPair, figures: Figures): void {
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
      // What is merged by now would count twice; a store that stays away costs the figures of a few spans.
      spans[span] = spans[span].filter(({ startAt }) => startAt >= now() - WRITTEN_MS[span]);
      for (const each of spans[span]) await write(span, each);
      const rest = spans[span].filter((each, at, all) => at === all.length - 1 || each.changed.size > 0);
      spans[span] = rest.slice(-5);
    }
  }

  async function write(span: FigureSpan, { startAt, subjects, changed }: Span): Promise<void> {
    const keys = [...changed];
    for (let from = 0; from < keys.length; from += BATCH) {
      const batch = keys.slice(from, from + BATCH);
      for (const key of batch) changed.delete(key);
      const rows = batch.flatMap((key): FigureRow[] => {
        const counted = subjects.get(key);
        return counted === undefined
          ? []
          : [{ span, startAt, ...counted.subject, figures: textFromFigures(counted.figures) }];
      });
      try {
        await store.put(writer, rows);
      } catch (error) {
        for (const key of batch) changed.add(key);
        onFault(error);
        return;
      }
    }
  }

  const writeNow = () => {
    writing ??= writeAll().finally(() => {
      writing = undefined;
    });
    return writing;
  };
  const timer = setInterval(() => void writeNow(), WRITE_MS).unref();

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
          await writing;
          await writeNow();
        })(),
        CLOSE_MS,
      );
    },
  };
}
