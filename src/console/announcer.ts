/** Says how many calls came, not more often than can be listened to. */
export interface Announcer {
  /** What is to be said at the moment. */
  readonly text: string;
  close(): void;
}

/** How many there were since the start. */
export interface CallCounts {
  readonly count: number;
  readonly failures: number;
}

/** A sentence takes some seconds to say, in milliseconds. */
const EVERY_MS = 10_000;

/** @param onChange the text is another one. */
export function createAnnouncer(counts: () => CallCounts, onChange: () => void): Announcer {
  let text = "";
  let said = { count: 0, failures: 0 };
  const timer = setInterval(() => {
    const { count, failures } = counts();
    if (count > said.count) {
      text = `${count - said.count} new calls, ${failures - said.failures} of them failed.`;
      onChange();
    }
    said = { count, failures };
  }, EVERY_MS);
  return {
    get text() {
      return text;
    },
    close: () => clearInterval(timer),
  };
}
