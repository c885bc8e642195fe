import { within } from "./list-calls.js";

/** Parts of a call's time. `total` of a streamed answer is the time until its head. */
const FIGURE_PARTS = ["total", "relay", "queue", "token", "provider"] as const;
export type FigurePart = (typeof FIGURE_PARTS)[number];

/** What counts of one call: how it ended, and its times in milliseconds. */
export interface CountedCall {
  readonly isError: boolean;
  readonly times: Readonly<Record<FigurePart, number>>;
}

/** How often each of some lengths of time was seen: place of the length among {@link lengthAt} → count. */
type Histogram = Map<number, number>;

/** Counts of calls, and how long their parts took. Small whatever their number; two of them add up. */
export interface Figures {
  count: number;
  errors: number;
  readonly parts: Readonly<Record<FigurePart, Histogram>>;
}

/** Neighbouring lengths are apart by this factor: a percentile is right to a tenth. */
const STEP = 2 ** (1 / 4);
/** The shortest length that is told apart, in milliseconds. */
const SHORTEST_MS = 0.1;
/** Up to some twenty minutes; what takes longer counts as that. */
const LENGTHS = 96;

/** No calls. */
export function emptyFigures(): Figures {
  return {
    ...{ count: 0, errors: 0 },
    parts: { total: new Map(), relay: new Map(), queue: new Map(), token: new Map(), provider: new Map() },
  };
}

/** Counts a call. */
export function addCall(figures: Figures, { isError, times }: CountedCall): void {
  figures.count += 1;
  if (isError) figures.errors += 1;
  for (const part of FIGURE_PARTS) add(figures.parts[part], placeOf(times[part]), 1);
}

/** Adds others to figures. */
export function addFigures(figures: Figures, others: Figures): void {
  figures.count += others.count;
  figures.errors += others.errors;
  for (const part of FIGURE_PARTS)
    for (const [place, count] of others.parts[part]) add(figures.parts[part], place, count);
}

function add(histogram: Histogram, place: number, count: number): void {
  histogram.set(place, (histogram.get(place) ?? 0) + count);
}

function placeOf(ms: number): number {
  if (!(ms > SHORTEST_MS)) return 0;
  return Math.min(LENGTHS - 1, Math.ceil(Math.log(ms / SHORTEST_MS) / Math.log(STEP)));
}

/** What counts at a place, in milliseconds: the middle of it, and nothing for what is too short to be told. Pure. */
function lengthAt(place: number): number {
  return place === 0 ? 0 : SHORTEST_MS * STEP ** (place - 0.5);
}

/** The nearest-rank percentile of a part, in milliseconds; undefined where there was no call. Pure. */
export function percentileOf({ count, parts }: Figures, part: FigurePart, share: number): number | undefined {
  if (count === 0) return undefined;
  let left = Math.ceil(share * count);
  const places = [...parts[part]].sort(([one], [other]) => one - other);
  for (const [place, of] of places) {
    left -= of;
    if (left <= 0) return lengthAt(place);
  }
  return undefined;
}

/** As it is stored: `[count, errors, [place, count, place, count, …] of each part]`. Pure. */
export function textFromFigures({ count, errors, parts }: Figures): string {
  return JSON.stringify([count, errors, ...FIGURE_PARTS.map((part) => [...parts[part]].flat())]);
}

/** The other way round. Pure. Throws for a text that is none. */
export function figuresFromText(text: string): Figures {
  const [count, errors, ...histograms] = JSON.parse(text) as [number, number, ...number[][]];
  const figures = { ...emptyFigures(), count, errors };
  for (const [at, part] of FIGURE_PARTS.entries()) {
    const pairs = histograms[at] ?? [];
    for (let index = 0; index < pairs.length; index += 2)
      add(figures.parts[part], pairs[index] as number, pairs[index + 1] as number);
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

/** Whose calls are counted: of all, of one application, or to one provider. */
interface FigureSubject {
  readonly kind: "ALL" | "APPLICATION" | "PROVIDER";
  /** The application's id or the provider's name; empty for all. */
  readonly id: string;
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

/** Applications and providers that are told apart in one span; the others count among all. */
const MAX_SUBJECTS = 500;
/** Soon enough for a figure of the last minutes. */
const WRITE_MS = 5000;
const CLOSE_MS = 2000;
/** Rows that are written at once. */
const BATCH = 200;

/** What was counted of one application at one provider, and not added up yet. */
interface FreshFigures {
  readonly applicationId: string;
  readonly provider: string | undefined;
  readonly figures: Figures;
}

const ALL: FigureSubject = { kind: "ALL", id: "" };

/** What is counted of one span that has not ended. */
class Span {
  readonly subjects = new Map<string, { readonly subject: FigureSubject; readonly figures: Figures }>();
  /** Those that have changed since they were written. */
  readonly changed = new Set<string>();

  constructor(readonly startAt: number) {}

  add(subject: FigureSubject, figures: Figures): void {
    const key = `${subject.kind} ${subject.id}`;
    const known = this.subjects.get(key);
    if (known === undefined && this.subjects.size >= MAX_SUBJECTS) return;
    const counted = known ?? { subject, figures: emptyFigures() };
    addFigures(counted.figures, figures);
    this.subjects.set(key, counted);
    this.changed.add(key);
  }
}

/** Counts by minute and by hour, and writes both again and again: a process that is killed loses seconds. */
export function createFigureWriter({ store, writer, now, onFault }: FigureWriterOptions): FigureWriter {
  /** Those that are counted, and those that are still to be written. */
  const spans: Record<FigureSpan, Span[]> = { MINUTE: [], HOUR: [] };
  /** Of this minute, by application and provider: each call counts once, and what it belongs to is added up later. */
  let fresh = new Map<string, FreshFigures>();
  let minuteAt = 0;
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

  function addUp(): void {
    for (const { applicationId, provider, figures } of fresh.values()) {
      for (const span of ["MINUTE", "HOUR"] as const) {
        const counted = spanAt(span, minuteAt);
        counted.add(ALL, figures);
        counted.add({ kind: "APPLICATION", id: applicationId }, figures);
        if (provider !== undefined) counted.add({ kind: "PROVIDER", id: provider }, figures);
      }
    }
    fresh = new Map();
  }

  async function writeAll(): Promise<void> {
    addUp();
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
      if (startAt !== minuteAt) addUp();
      minuteAt = startAt;
      const key = `${applicationId} ${provider ?? ""}`;
      const counted = fresh.get(key) ?? { applicationId, provider, figures: emptyFigures() };
      addCall(counted.figures, call);
      fresh.set(key, counted);
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
