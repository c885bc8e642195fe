import type { LeakFinder } from "./canary.js";

/** Reads the log of a relay as it is written. */
export interface LogWatch {
  add(line: string): void;
  /** Lines so far, and what was wrong with them, each problem once. */
  read(): { readonly lines: number; readonly problems: readonly string[] };
}

/** A line at a time, the search would take longer than the calls. */
const BATCH_LENGTH = 65_536;
/** Faults of ours; `client` and `session` are what clients do. */
const FAULT = /"where":"(call|handler|rpc|accept|connections)"[^\n]*/g;

/** Searches for tokens, and for faults that no input may cause. */
export function createLogWatch(findLeak: LeakFinder): LogWatch {
  const problems = new Set<string>();
  let lines = 0;
  let batch = "";
  const search = () => {
    const leak = findLeak(batch);
    if (leak !== undefined) problems.add(`the log has the token, ${leak}`);
    for (const [line] of batch.matchAll(FAULT)) problems.add(`a fault in the log: ${line}`);
    batch = "";
  };
  return {
    add(line) {
      lines += 1;
      batch += line;
      if (batch.length > BATCH_LENGTH) search();
    },
    read() {
      search();
      return { lines, problems: [...problems] };
    },
  };
}
