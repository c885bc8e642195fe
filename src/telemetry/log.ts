import cluster from "node:cluster";
import { writeSync } from "node:fs";
import { type Logger, pino } from "pino";

/** A log, and what became of its lines. */
export interface Log {
  readonly logger: Logger;
  /** Lines since the start that were dropped because nobody read standard output. */
  droppedLines(): number;
}

/**
 * JSON lines on standard output. Nothing is logged by deny-list: callers pass names and numbers that are fit to be read.
 *
 * Lines are written in blocks; what waits is written when the process exits, whatever for, and before a fatal line is
 * done. Only a process that is killed loses what was logged in the last tenth of a second. A reader that stands still
 * loses lines, which are counted, and stops nothing else.
 *
 * @param isShared whether standard output is that of other processes, too.
 */
export function createLog(level: string, isShared = false): Log {
  // Node.js makes a pipe non-blocking as soon as its stream is asked for: from then on what cannot be taken is refused.
  const { fd } = process.stdout;
  const output = { write: (bytes: Buffer) => writeSync(fd, bytes) };
  const onTaken = (dropped: number) => logger.warn({ dropped }, "log lines were dropped: nobody read them");
  const blocks = createLineBlocks(output, onTaken, isShared);
  // With workers each line says whose it is; a single process has nobody to be told from.
  const base = cluster.isWorker ? { worker: process.pid } : null;
  const logger = pino({ level, base, timestamp: createIsoTime() }, blocks);
  process.on("exit", () => blocks.flushSync());
  return { logger, droppedLines: () => blocks.dropped };
}

/** The time member of a line (RFC 3339, UTC): all but the milliseconds is made once a second. */
function createIsoTime(): () => string {
  let second = Number.NaN;
  let prefix = "";
  return () => {
    const now = Date.now();
    const nowSecond = Math.floor(now / 1000);
    if (nowSecond !== second) {
      second = nowSecond;
      prefix = `,"time":"${new Date(nowSecond * 1000).toISOString().slice(0, -"000Z".length)}`;
    }
    return `${prefix}${String(now - nowSecond * 1000).padStart(3, "0")}Z"`;
  };
}

/**
 * What a foreign error may leave in a log: its class, its code or that of the error behind it, and where in our code it
 * was caught. Never its text, which may quote input (threats J14, L05).
 */
export function describeError(error: unknown): {
  readonly class: string;
  readonly code: string | undefined;
  readonly at: string | undefined;
} {
  if (!(error instanceof Error)) return { class: typeof error, code: undefined, at: undefined };
  const code = (error as { code?: unknown }).code;
  return {
    class: error.name,
    code: typeof code === "string" ? code : causeOf(error),
    at: placeOf(error),
  };
}

/** The first line of the stack that is no part of the text, of which any line may look like one. */
function placeOf({ stack = "", message }: Error): string | undefined {
  return stack
    .slice(stack.indexOf(message) + message.length)
    .split("\n")
    .find((line) => line.trimStart().startsWith("at "))
    ?.trim();
}

/** What stood behind a failure, for the log: a code or a class, never a text. */
export function causeOf(error: unknown): string | undefined {
  const cause = error instanceof Error ? error.cause : undefined;
  if (!(cause instanceof Error)) return undefined;
  const { rule, code } = cause as { rule?: unknown; code?: unknown };
  return [code ?? cause.name, rule].filter((part) => typeof part === "string").join(" ");
}

/** Where log lines go, which takes what it can without waiting. */
interface LineOutput {
  /** Returns how many octets were taken. Throws when none can be just now, or any more. */
  write(bytes: Buffer): number;
}

/** A destination for log lines. */
interface LineBlocks {
  /** Never waits: a line that there is no room for is dropped. */
  write(line: string): void;
  /** Writes what waits, for a second at most: a reader that stands still must not keep the process from ending. */
  flushSync(): void;
  /** Lines that were dropped since the start. */
  readonly dropped: number;
}

/** Lines are written at once when they have become so long together: a system call for each costs more than making it. */
const BLOCK_LENGTH = 16 * 1024;
/** A line waits no longer than this, in milliseconds. */
const MAX_WAIT_MS = 100;
/** What was not taken is offered again after so long, in milliseconds, or with the next block. */
const RETRY_MS = 20;
/** What may wait for a reader: the lines of some ten thousand calls. */
const MAX_WAITING_BYTES = 4 * 1024 * 1024;
const MAX_FLUSH_MS = 1000;
/** What a pipe takes in one piece or not at all (pipe(7) of Linux; POSIX asks for less). */
const PIPE_BUF = 4096;

/**
 * Puts lines together to blocks, and drops lines instead of waiting for a reader that takes none. SonicBoom, which pino
 * would write through, can do both, but measures the whole block anew with each line; to drop it has to write in the
 * thread pool, where a standing reader holds a thread and the last lines before an exit may be lost.
 *
 * @param onTaken called when all that waited has been taken after lines were dropped: with how many.
 * @param isShared whether other processes write to the same output: then whole lines are written, in pieces of which a
 *   pipe takes all or nothing. Of more it takes a part when it is full, and the line of another process would come next.
 */
export function createLineBlocks(output: LineOutput, onTaken: (dropped: number) => void, isShared = false): LineBlocks {
  const maxPieceBytes = isShared ? PIPE_BUF : Number.POSITIVE_INFINITY;
  let lines: string[] = [];
  let length = 0;
  let waiting: Buffer[] = [];
  let waitingBytes = 0;
  let timer: NodeJS.Timeout | undefined;
  let dropped = 0;
  let told = 0;

  function offer(): void {
    clearTimeout(timer);
    timer = undefined;
    closeBlock();
    offerWaiting();
    if (waiting.length > 0) timer = setTimeout(offer, RETRY_MS).unref();
    else if (dropped > told) {
      const more = dropped - told;
      told = dropped;
      onTaken(more);
    }
  }

  function closeBlock(): void {
    if (lines.length === 0) return;
    const block = Buffer.from(lines.join(""));
    lines = [];
    length = 0;
    waiting.push(block);
    waitingBytes += block.length;
  }

  function offerWaiting(): void {
    let at = 0;
    for (const block of waiting) {
      const rest = restOf(block);
      waitingBytes -= block.length - rest.length;
      if (rest.length > 0) {
        waiting[at] = rest;
        break;
      }
      at += 1;
    }
    waiting = waiting.slice(at);
  }

  /** What is not taken of a block just now. */
  function restOf(block: Buffer): Buffer {
    let rest = block;
    while (rest.length > 0) {
      const piece = rest.subarray(0, lengthOfLines(rest, maxPieceBytes));
      const taken = takenOf(output, piece);
      rest = rest.subarray(taken);
      if (taken < piece.length) break;
    }
    return rest;
  }

  return {
    write(line) {
      if (waitingBytes + length + line.length > MAX_WAITING_BYTES) {
        dropped += 1;
        return;
      }
      lines.push(line);
      length += line.length;
      if (length >= BLOCK_LENGTH) offer();
      else timer ??= setTimeout(offer, MAX_WAIT_MS).unref();
    },
    flushSync() {
      offer();
      const until = performance.now() + MAX_FLUSH_MS;
      // Once all is taken there may be a line that says how many were dropped.
      while (waiting.length + lines.length > 0 && performance.now() < until) {
        if (waiting.length > 0) Atomics.wait(NEVER_WOKEN, 0, 0, RETRY_MS);
        offer();
      }
    },
    get dropped() {
      return dropped;
    },
  };
}

/** Nobody wakes who waits for it. */
const NEVER_WOKEN = new Int32Array(new SharedArrayBuffer(4));

const LINE_FEED = 0x0a;

/** Of the lines at the beginning of a block that have so many octets at most; of one line where that has more. */
function lengthOfLines(block: Buffer, maxBytes: number): number {
  if (block.length <= maxBytes) return block.length;
  const length = block.lastIndexOf(LINE_FEED, maxBytes - 1) + 1;
  return length > 0 ? length : block.indexOf(LINE_FEED) + 1;
}

/** A reader that is gone takes nothing either, and what is meant for it is dropped in the end. */
function takenOf(output: LineOutput, block: Buffer): number {
  try {
    return output.write(block);
  } catch {
    return 0;
  }
}
