/** Ctrl-C reaches a process twice when npm started it: from the terminal, and passed on by npm. In milliseconds. */
const SAME_KEYPRESS_MS = 500;

/**
 * Resolves at the first SIGINT or SIGTERM; a second one ends the process at once. Call it once.
 *
 * @param beforeExit called before a second one ends the process.
 */
export function stopSignal(beforeExit: () => void = () => {}): Promise<void> {
  return new Promise((resolve) => {
    let firstAt: number | undefined;
    const onSignal = (signal: NodeJS.Signals) => {
      const isSameKeypress =
        signal === "SIGINT" && firstAt !== undefined && performance.now() - firstAt < SAME_KEYPRESS_MS;
      if (firstAt !== undefined && !isSameKeypress) {
        beforeExit();
        process.exit(1);
      }
      firstAt ??= performance.now();
      resolve();
    };
    process.on("SIGINT", onSignal);
    process.on("SIGTERM", onSignal);
  });
}
