/** Often enough for the eye; milliseconds. */
const EVERY_MS = 100;

/**
 * Does slow work, and says meanwhile how far it is: on a terminal in one line of standard error, which is written over and
 * taken away at the end; in a pipe, a file or a log not at all.
 *
 * @param text what is shown first.
 * @param work is given what shows another text.
 */
export async function withProgress<Result>(
  text: string,
  work: (show: (text: string) => void) => Promise<Result>,
): Promise<Result> {
  const { stderr } = process;
  if (stderr.isTTY !== true) return work(() => {});
  let shownAt = Number.NEGATIVE_INFINITY;
  const show = (line: string) => {
    if (performance.now() - shownAt < EVERY_MS) return;
    shownAt = performance.now();
    stderr.write(`\r${line.slice(0, (stderr.columns || 80) - 1)}\x1b[K`);
  };
  show(text);
  return work(show).finally(() => stderr.write("\r\x1b[K"));
}
