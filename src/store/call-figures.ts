import { setImmediate as nextTurn } from "node:timers/promises";
import { inBatches } from "../lib/turns.js";
import {
  addFigures,
  emptyFigures,
  type FigureFilter,
  type FigureRow,
  type FigureSpan,
  type FigureStore,
  figuresFromText,
  textFromFigures,
} from "../records/figures.js";
import { all, createStatement, type Database, nothing, type Operation, run } from "./database.js";

/** A row of `call_figures`. */
type FiguresRow = FigureRow & { readonly writer: string };

/**
 * The first version of the table, in PostgreSQL's SQL, without `PAIR`. In SQLite it is in the file of call records. It
 * is part of migrations, so it never changes.
 */
export const FIGURES_TABLE = `
-- Figures of calls by span of time, one row for each process: small, of a week, and of the last hour by the minute.
CREATE TABLE call_figures (
  span TEXT NOT NULL CHECK (span IN ('MINUTE', 'HOUR')),
  kind TEXT NOT NULL CHECK (kind IN ('ALL', 'APPLICATION', 'PROVIDER')),
  -- The application's id, the provider's name, or empty.
  subject TEXT NOT NULL,
  start_at BIGINT NOT NULL,
  -- Which process has counted.
  writer TEXT NOT NULL,
  -- JSON.
  figures TEXT NOT NULL,
  PRIMARY KEY (span, kind, subject, start_at, writer)
);
CREATE INDEX call_figures_by_age ON call_figures (span, start_at);
`;

/** Migration that allows figures of an application at a provider in PostgreSQL's table. */
export const PAIR_FIGURES = `
ALTER TABLE call_figures DROP CONSTRAINT call_figures_kind_check;
ALTER TABLE call_figures ADD CONSTRAINT call_figures_kind_check
  CHECK (kind IN ('ALL', 'APPLICATION', 'PROVIDER', 'PAIR'));
`;

const PUT = createStatement<FiguresRow>(`INSERT INTO call_figures (span, kind, subject, start_at, writer, figures)
   VALUES (:span, :kind, :id, :start_at, :writer, :figures)
   ON CONFLICT (span, kind, subject, start_at, writer) DO UPDATE SET figures = excluded.figures`);

interface ReadBounds {
  readonly span: FigureSpan;
  readonly kind: FigureRow["kind"];
  readonly from: number;
  readonly afterId: string;
  readonly afterStart: number;
  readonly limit: number;
}

/** Never in the JSON of figures. */
const BETWEEN = ";";

/**
 * Reads one slice, in the order of the primary key. What all processes have counted of a subject and time is one row:
 * they may be merged between two slices.
 */
const readWhere = (where: string) => `
   SELECT span, kind, subject AS id, start_at, string_agg(figures, '${BETWEEN}') AS figures FROM call_figures
   WHERE span = :span AND kind = :kind AND ${where} AND start_at >= :from
   GROUP BY span, kind, subject, start_at ORDER BY span, kind, subject, start_at LIMIT :limit`;

const READ = createStatement<ReadBounds, FigureRow>(readWhere("(subject, start_at) > (:after_id, :after_start)"));

const READ_OF_ONE = createStatement<ReadBounds & { readonly id: string }, FigureRow>(
  readWhere("subject = :id AND start_at > :after_start"),
);

const DELETE_BEFORE = createStatement<{ span: FigureSpan; time: number; limit: number }>(`
   DELETE FROM call_figures WHERE (span, kind, subject, start_at, writer) IN (
     SELECT span, kind, subject, start_at, writer FROM call_figures
     WHERE span = :span AND start_at < :time ORDER BY span, start_at LIMIT :limit)`);

type SubjectOfSpan = Omit<FiguresRow, "writer" | "figures">;

/** Subjects with figures of several processes. */
const SHARED = createStatement<Pick<FiguresRow, "span" | "startAt">, Pick<FiguresRow, "kind" | "id">>(`
   SELECT kind, subject AS id FROM call_figures WHERE span = :span AND start_at = :start_at
   GROUP BY kind, subject HAVING count(*) > 1`);

const OF_SUBJECT = "span = :span AND kind = :kind AND subject = :id AND start_at = :start_at";

/** Another process that merges the same subject waits for the first row, and then sees the merged rows. */
const LOCK = createStatement<SubjectOfSpan & { limit: number }, Pick<FiguresRow, "writer" | "figures">>(
  `SELECT writer, figures FROM call_figures WHERE ${OF_SUBJECT} ORDER BY writer LIMIT :limit FOR UPDATE`,
);

const DELETE_MERGED = createStatement<SubjectOfSpan & { into: string; last: string }>(
  `DELETE FROM call_figures WHERE ${OF_SUBJECT} AND writer > :into AND writer <= :last`,
);

/** Rows read or merged at a time: a few milliseconds. */
const SLICE = 300;

/**
 * Uses the database that holds a table.
 *
 * @param ifNone the result when there is no database yet; without it, one is created.
 */
export type UseDatabase = <T>(work: (database: Database) => Promise<T>, ifNone?: { readonly answer: T }) => Promise<T>;

/** Opens the table of figures. */
export function createFigureStore(use: UseDatabase): FigureStore {
  return {
    put: (writer, rows) => use((database) => database.write(() => putAll(writer, rows), nothing)),
    async *read(filter) {
      let last: FigureRow | undefined;
      for (;;) {
        const rows: FigureRow[] = await use((database) => database.read(() => slice(filter, last)), { answer: [] });
        yield* rows.flatMap(rowsFrom);
        last = rows.at(-1);
        if (rows.length < SLICE) return;
        await nextTurn();
      }
    },
    merge: (span, startAt) =>
      use(
        async (database) => {
          for (const subject of await database.read(() => all(SHARED, { span, startAt }))) {
            await inBatches(SLICE, () => database.write(() => merge({ span, startAt, ...subject }), nothing));
            await nextTurn();
          }
        },
        { answer: undefined },
      ),
    deleteBefore: (span, time, limit) =>
      use((database) => database.write(() => run(DELETE_BEFORE, { span, time, limit }), nothing), { answer: 0 }),
  };
}

function* putAll(writer: string, rows: readonly FigureRow[]): Operation<void> {
  for (const row of rows) yield* run(PUT, { ...row, writer });
}

/** Adds up the first rows of a subject into the first of them. Returns how many rows there were. */
function* merge(subject: SubjectOfSpan): Operation<number> {
  const rows = yield* all(LOCK, { ...subject, limit: SLICE });
  const [into, last] = [rows[0], rows.at(-1)];
  if (into === undefined || last === undefined || into === last) return rows.length;
  const sum = emptyFigures();
  for (const { figures } of rows) addFigures(sum, figuresFromText(figures));
  yield* run(PUT, { ...subject, writer: into.writer, figures: textFromFigures(sum) });
  yield* run(DELETE_MERGED, { ...subject, into: into.writer, last: last.writer });
  return rows.length;
}

function slice({ span, kind, id, fromAt }: FigureFilter, last: FigureRow | undefined): Operation<FigureRow[]> {
  const after = { afterId: last?.id ?? "", afterStart: last?.startAt ?? -1 };
  const bounds = { span, kind, from: fromAt, ...after, limit: SLICE };
  return id === undefined ? all(READ, bounds) : all(READ_OF_ONE, { ...bounds, id });
}

function rowsFrom(row: FigureRow): FigureRow[] {
  return row.figures.split(BETWEEN).map((figures) => ({ ...row, figures }));
}
