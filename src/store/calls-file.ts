import type Sqlite from "better-sqlite3";
import { RelayError } from "../model/errors.js";
import type { CallBlock } from "../records/call-block.js";
import { createCallBlockStore, TRIM } from "./call-blocks.js";
import { createFigureStore, FIGURES_TABLE, type UseDatabase } from "./call-figures.js";
import { createStatement, type Database, first, type Operation, run } from "./database.js";
import { type DatabaseKind, openDatabase } from "./open-database.js";
import { createSqliteDatabase } from "./sqlite-driver.js";
import { identityOf, isDamage, moveAside } from "./sqlite-error.js";

/** What the file of call records needs. */
interface CallsFileOptions {
  /** Whether there is an application of this id. */
  readonly exists: (applicationId: string) => boolean;
  /** Called with the path that a damaged file was moved to. */
  readonly onDamaged: (aside: string) => void;
}

/**
 * Keeps call records in a separate file beside the database, `relay.db-calls`. So writing them does not invalidate
 * other processes' cached connections, and does not block the storing of tokens; and the records are not in backups. If
 * the file is damaged, only the records are lost: a new one is created, and the service goes on.
 *
 * @param path the database's.
 */
export function createCallsFile(path: string, { exists, onDamaged }: CallsFileOptions) {
  const file = new LazyFile(`${path}-calls`, onDamaged);
  const use: UseDatabase = (work, ifNone) => file.use(work, ifNone);
  const store = createCallBlockStore({
    use,
    async append(blocks, maxCalls) {
      const kept = blocks.filter(({ applicationId }) => exists(applicationId));
      if (kept.length === 0) return 0;
      await use((database) => database.write(() => append(kept, maxCalls)));
      return kept.reduce((sum, { count }) => sum + count, 0);
    },
    *lastSequence() {
      return (yield* first(LAST, {}))?.seq ?? 0;
    },
  });
  return { ...store, figures: createFigureStore(use), close: () => file.close() };
}

/** SQLite keeps this row when blocks are deleted, so numbers are never reused. */
const LAST = createStatement<object, { seq: number }>("SELECT seq FROM sqlite_sequence WHERE name = 'call_blocks'");

const END = createStatement<{ applicationId: string }, { position: number }>(`
   SELECT position + count AS position FROM call_blocks WHERE application_id = :application_id
   ORDER BY sequence DESC LIMIT 1`);

const ADD = createStatement<CallBlock & { position: number }>(`
   INSERT INTO call_blocks (application_id, position, count, first_at, last_at, calls)
   VALUES (:application_id, :position, :count, :first_at, :last_at, :calls)`);

const TRIM_RING = createStatement<{ applicationId: string; limit: number; before: number }>(`
   DELETE FROM call_blocks WHERE sequence IN (
     SELECT sequence FROM (
       SELECT sequence, position FROM call_blocks WHERE application_id = :application_id ORDER BY sequence LIMIT :limit
     ) WHERE position < :before)`);

function* append(blocks: readonly CallBlock[], maxCalls: number): Operation<void> {
  for (const block of blocks) {
    const position = (yield* first(END, block))?.position ?? 0;
    yield* run(ADD, { ...block, position });
    yield* run(TRIM_RING, { ...block, limit: TRIM, before: position + block.count - maxCalls });
  }
}

/** Times are milliseconds since the epoch. Never change a migration, except for its comments. */
export const CALLS_MIGRATIONS: readonly string[] = [
  `
CREATE TABLE call_blocks (
  -- Never reused, so that a reader that continues after a block misses none.
  sequence INTEGER PRIMARY KEY AUTOINCREMENT,
  application_id TEXT NOT NULL,
  -- Number of calls of the application before this block.
  position INTEGER NOT NULL,
  count INTEGER NOT NULL,
  -- When its first and last call began.
  first_at INTEGER NOT NULL,
  last_at INTEGER NOT NULL,
  -- JSON.
  calls TEXT NOT NULL
) STRICT;
-- Starts at the current time in microseconds, so that numbers are larger than those of an earlier, replaced file.
INSERT INTO sqlite_sequence (name, seq) VALUES ('call_blocks', unixepoch() * 1000000);
CREATE INDEX call_blocks_by_application ON call_blocks (application_id, sequence);
CREATE INDEX call_blocks_by_time ON call_blocks (last_at, first_at);
${FIGURES_TABLE.replaceAll(" BIGINT ", " INTEGER ").replace("\n);", "\n) STRICT;")}
`,
  // Allows figures of an application at a provider: SQLite changes a CHECK only by rebuilding the table.
  `
CREATE TABLE new_call_figures (
  span TEXT NOT NULL CHECK (span IN ('MINUTE', 'HOUR')),
  kind TEXT NOT NULL CHECK (kind IN ('ALL', 'APPLICATION', 'PROVIDER', 'PAIR')),
  subject TEXT NOT NULL,
  start_at INTEGER NOT NULL,
  writer TEXT NOT NULL,
  figures TEXT NOT NULL,
  PRIMARY KEY (span, kind, subject, start_at, writer)
) STRICT;
INSERT INTO new_call_figures SELECT span, kind, subject, start_at, writer, figures FROM call_figures;
DROP TABLE call_figures;
ALTER TABLE new_call_figures RENAME TO call_figures;
CREATE INDEX call_figures_by_age ON call_figures (span, start_at);
`,
];

/**
 * synchronous NORMAL: a power loss may cost the last seconds of records and nothing else, and no call waits for the
 * disk. secure_delete FAST: deleted rows are overwritten where that takes no extra writes; the ring soon reuses their
 * place.
 */
const CALLS: DatabaseKind = {
  pragmas: [
    ["trusted_schema", "OFF", 0],
    ["secure_delete", "FAST", 2],
    ["journal_mode", "WAL", "wal"],
    ["synchronous", "NORMAL", 1],
  ],
  migrations: CALLS_MIGRATIONS,
  // Calls are being served, and the records can wait.
  startTimeoutMs: 100,
  busyTimeoutMs: 5,
};

/** How long to wait before opening a file again that could not be opened, in milliseconds. */
const RETRY_MS = 30_000;

const UNUSABLE = "The call records cannot be opened. The operator must check the relay's database folder.";

/** A file that is opened on first use, and created on the first write. */
class LazyFile {
  readonly #path: string;
  readonly #onDamaged: (aside: string) => void;
  #opened: { readonly db: Sqlite.Database; readonly database: Database } | undefined;
  /** The file that was opened, or could not be. */
  #identity: string | undefined;
  #failure: unknown;
  #failedAt = Number.NEGATIVE_INFINITY;
  #isClosed = false;

  constructor(path: string, onDamaged: (aside: string) => void) {
    this.#path = path;
    this.#onDamaged = onDamaged;
  }

  /** Runs an operation on the file, or on a new one when that turns out to be damaged. */
  async use<T>(operation: (database: Database) => Promise<T>, ifNone?: { readonly answer: T }): Promise<T> {
    const tried = this.#tryOnce(operation, ifNone);
    // Other operations may have opened another file by the time this one fails.
    const identity = this.#identity;
    try {
      return await tried;
    } catch (error) {
      if (!isDamage(error) || !this.#replace(identity)) throw error;
      return this.#tryOnce(operation, ifNone);
    }
  }

  close(): void {
    this.#isClosed = true;
    this.#letGo();
  }

  async #tryOnce<T>(operation: (database: Database) => Promise<T>, ifNone?: { readonly answer: T }): Promise<T> {
    const identity = identityOf(this.#path);
    // Another process has moved the file aside, or somebody has deleted it.
    if (identity !== this.#identity) this.#letGo();
    if (identity === undefined && ifNone !== undefined) return ifNone.answer;
    return operation(this.#openedFile());
  }

  #openedFile(): Database {
    if (this.#isClosed) throw new RelayError("STORE_UNAVAILABLE", "The relay is stopping. Try again.");
    if (this.#opened !== undefined) return this.#opened.database;
    if (performance.now() - this.#failedAt < RETRY_MS) throw this.#failure;
    try {
      this.#identity = identityOf(this.#path);
      const db = openDatabase(this.#path, CALLS);
      this.#identity = identityOf(this.#path);
      this.#opened = { db, database: createSqliteDatabase(db) };
      return this.#opened.database;
    } catch (error) {
      this.#failure = new RelayError("STORE_UNAVAILABLE", UNUSABLE, { cause: error });
      this.#failedAt = performance.now();
      throw this.#failure;
    }
  }

  /** Moves the damaged file aside, unless that is done already. Returns false when it cannot be moved. */
  #replace(identity: string | undefined): boolean {
    if (identity !== this.#identity) return true;
    const aside = `${this.#path}-damaged`;
    try {
      if (moveAside(this.#path, aside, identity)) this.#onDamaged(aside);
    } catch {
      // The folder cannot be written. The caller throws the original error, which says that the file is damaged.
      return false;
    }
    this.#letGo();
    return true;
  }

  #letGo(): void {
    this.#opened?.db.close();
    this.#opened = undefined;
    this.#failedAt = Number.NEGATIVE_INFINITY;
  }
}
