import cluster from "node:cluster";
import { writeSync } from "node:fs";
import { type Logger, pino } from "pino";

/** A logger, and the number of lines it dropped. */
export interface Log {
  readonly logger: Logger;
  /** Lines dropped since the start because standard output was not read. */
  droppedLines(): number;
}

/**
 * Writes JSON lines to standard output. There is no deny-list: callers pass only names and numbers that are safe to
 * log.
 *
 * Lines are written in blocks. Buffered lines are flushed when the process exits, for whatever reason, and with each
 * fatal line. Only a killed process loses the last tenth of a second. When the reader stalls, lines are dropped and
 * counted; nothing else is held up.
 *
 * @param isShared whether other processes write to the same standard output.
 */
export function createLog(level: string, isShared = false): Log {
  // Accessing process.stdout makes Node.js set a pipe to non-blocking: a write to a full pipe then fails with EAGAIN.
  const { fd } = process.stdout;
  const output = { write: (bytes: Buffer) => writeSync(fd, bytes) };
  const onTaken = (dropped: number) =>
    logger.warn({ dropped }, "log lines were dropped because standard output was not read fast enough");
  const blocks = createLineBlocks(output, onTaken, isShared);
  // With workers, each line carries the process id; a single process does not need one.
  const base = cluster.isWorker ? { worker: process.pid } : null;
  const logger = pino({ level, base, timestamp: pino.stdTimeFunctions.isoTime }, blocks);
  process.on("exit", () => blocks.flushSync());
  return { logger, droppedLines: () => blocks.dropped };
}

/**
 * What may be logged of a foreign error: its class, its code or its cause's, and the top frame of its stack. Never its
 * message, which may quote input (threats J14, L05).
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

/** The same in one line, for people. */
export function textFromError(error: unknown): string {
  return Object.values(describeError(error)).filter(Boolean).join(" ");
}

/** The first stack frame. Skips the message, since any line of it may look like a frame. */
function placeOf({ stack = "", message }: Error): string | undefined {
  return stack
    .slice(stack.indexOf(message) + message.length)
    .split("\n")
    .find((line) => line.trimStart().startsWith("at "))
    ?.trim();
}

/** The cause of a failure, for the log: a code or a class, never a message. */
export function causeOf(error: unknown): string | undefined {
  const cause = error instanceof Error ? error.cause : undefined;
  if (!(cause instanceof Error)) return undefined;
  const { rule, code } = cause as { rule?: unknown; code?: unknown };
  return [code ?? cause.name, rule].filter((part) => typeof part === "string").join(" ");
}

/** A non-blocking output for log lines. */
interface LineOutput {
  /** Returns how many bytes were written. Throws when none can be written at the moment, or ever again. */
  write(bytes: Buffer): number;
}

/** Buffered lines are written when they reach this length: a system call per line costs more than building the line. */
const BLOCK_LENGTH = 16 * 1024;
/** Longest time that a line is buffered. */
const MAX_WAIT_MS = 100;
/** Delay before an incomplete write is retried, unless the next block comes first. */
const RETRY_MS = 20;
/** Most bytes buffered for a slow reader: the lines of some ten thousand calls. */
const MAX_WAITING_BYTES = 4 * 1024 * 1024;
const MAX_FLUSH_MS = 1000;
/** Largest atomic write to a pipe (Linux pipe(7); POSIX guarantees less). */
const PIPE_BUF = 4096;

/**
 * Batches lines into blocks, and drops lines rather than wait for a stalled reader. SonicBoom, pino's default
 * destination, can do both, but it measures the whole block again with each line. To drop lines it must write in the
 * thread pool, where a stalled reader blocks a thread and the last lines before an exit may be lost.
 *
 * @param onTaken called with the number of dropped lines, once the buffer has been written out.
 * @param isShared whether other processes write to the same output. Whole lines are then written in pieces of at most
 *   PIPE_BUF, which are atomic. A larger write to a full pipe may be split, with another process's line in between.
 */
export function createLineBlocks(output: LineOutput, onTaken: (dropped: number) => void, isShared = false) {
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

  /** Writes what it can of a block; returns the rest. */
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
    /** Never blocks: drops the line when the buffer is full. */
    write(line: string): void {
      if (waitingBytes + length + line.length > MAX_WAITING_BYTES) {
        dropped += 1;
        return;
      }
      lines.push(line);
      length += line.length;
      if (length >= BLOCK_LENGTH) offer();
      else timer ??= setTimeout(offer, MAX_WAIT_MS).unref();
    },
    /** Writes buffered lines, for at most a second: a stalled reader must not keep the process from exiting. */
    flushSync(): void {
      offer();
      const until = performance.now() + MAX_FLUSH_MS;
      // When everything is written, `onTaken` may add a line that reports how many were dropped.
      while (waiting.length + lines.length > 0 && performance.now() < until) {
        if (waiting.length > 0) Atomics.wait(NEVER_WOKEN, 0, 0, RETRY_MS);
        offer();
      }
    },
    /** Lines dropped since the start. */
    get dropped(): number {
      return dropped;
    },
  };
}

/** Used to sleep synchronously: nothing ever notifies it. */
const NEVER_WOKEN = new Int32Array(new SharedArrayBuffer(4));

const LINE_FEED = 0x0a;

/** Length of as many leading lines of a block as fit in `maxBytes`, or of the first line if that alone is longer. */
function lengthOfLines(block: Buffer, maxBytes: number): number {
  if (block.length <= maxBytes) return block.length;
  const length = block.lastIndexOf(LINE_FEED, maxBytes - 1) + 1;
  return length > 0 ? length : block.indexOf(LINE_FEED) + 1;
}

/**
 * Bytes written; 0 when the write fails. A reader that has gone looks like a slow one; its lines are dropped in the
 * end.
 */
function takenOf(output: LineOutput, block: Buffer): number {
  try {
    return output.write(block);
  } catch {
    return 0;
  }
}
