import {
  addCall,
  addFigures,
  type CountedCall,
  emptyFigures,
  type FigureRow,
  type FigureSpan,
  type FigureStore,
  type FigureSubject,
  type Figures,
  SPAN_MS,
  textFromFigures,
} from "./figures.js";
import { within } from "./list-calls.js";

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
    const last = spans[span].at(-1);
    if (last?.startAt === startAt) return last;
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
      for (const each of spans[span]) await write(span, each);
      // A store that stays away costs the figures of a few spans, and no more memory.
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
