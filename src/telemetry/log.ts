import cluster from "node:cluster";
import { writeSync } from "node:fs";
import { type Logger, pino } from "pino";
import { createLineBlocks } from "./line-blocks.js";

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
