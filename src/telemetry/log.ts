import { type Logger, pino, stdTimeFunctions } from "pino";

/** JSON lines on standard output. Nothing is logged by deny-list: callers pass names and numbers that are fit to be read. */
export function createLogger(level: string): Logger {
  return pino({ level, base: null, timestamp: stdTimeFunctions.isoTime });
}

/**
 * What a foreign error may leave in a log: its class, its code, and where in our code it was caught. Never its text,
 * which may quote input (threats J14, L05).
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
    code: typeof code === "string" ? code : undefined,
    at: error.stack
      ?.split("\n")
      .find((line) => line.trimStart().startsWith("at "))
      ?.trim(),
  };
}

/** What stood behind a failure, for the log: a code or a class, never a text. */
export function causeOf(error: unknown): string | undefined {
  const cause = error instanceof Error ? error.cause : undefined;
  if (!(cause instanceof Error)) return undefined;
  const { rule, code } = cause as { rule?: unknown; code?: unknown };
  return [code ?? cause.name, rule].filter((part) => typeof part === "string").join(" ");
}
