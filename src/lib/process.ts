import { existsSync, readFileSync } from "node:fs";
import { setFlagsFromString } from "node:v8";
import { runInNewContext } from "node:vm";

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

/** Exit codes of a failure: 1 the operation failed, 2 the usage or the configuration is wrong. */
export type FailureCode = 1 | 2;

/** Errors whose message is for the operator, by name, so that nothing needs to be loaded to tell them. */
const OPERATOR_ERRORS: ReadonlyMap<string, FailureCode> = new Map([
  ["RelayError", 1],
  ["ApplicationExistsError", 1],
  ["StoreOpenError", 1],
  ["StoreNotEmptyError", 1],
  ["KeyFileError", 2],
  ["KeyMismatchError", 2],
  ["AdminTokenFileError", 2],
  ["ProviderDefinitionError", 2],
]);

/** The exit code of an error whose message is for the operator; undefined for every other one. */
export function operatorExitCode(error: unknown): FailureCode | undefined {
  return error instanceof Error ? OPERATOR_ERRORS.get(error.name) : undefined;
}

interface Manifest {
  readonly version: string;
  readonly engines: { readonly node: string };
}

/** The version of this package. */
export function packageVersion(): string {
  return readManifest()?.version ?? "unknown";
}

/** The versions of Node.js that it works with, as a range of npm; `*` where that is not known. */
export function supportedNode(): string {
  return readManifest()?.engines.node ?? "*";
}

/** Its package.json stands above `dist/`, or above `src/` where that is run as it is. */
function readManifest(): Manifest | undefined {
  const files = ["../../package.json", "../../../package.json"].map((path) => new URL(path, import.meta.url));
  const file = files.find((candidate) => existsSync(candidate));
  return file === undefined ? undefined : (JSON.parse(readFileSync(file, "utf8")) as Manifest);
}

/**
 * Keeps V8 from guessing where objects live long. What a call makes lives as long as the provider takes: with some hundred
 * calls in flight V8 sees it outlive its frequent collections, and from then on makes it where only the rare, long ones
 * look. To be called before calls are served.
 */
export function keepObjectsYoung(): void {
  setFlagsFromString("--no-allocation-site-pretenuring");
}

/** A collection at rest takes a millisecond, and under load V8 has many of its own in that time. */
const PAUSE_MS = 5000;

/**
 * Collects young objects every few seconds for as long as the process lives. What V8 has grown their space to by a start
 * or a load, up to 32 MiB, it gives back only with a collection before which little was made; at rest it has none.
 */
export function shrinkAtRest(): void {
  setInterval(createYoungCollection(), PAUSE_MS).unref();
}

/** V8's collection of young objects, which it keeps for those who ask with a flag: it is set and taken back here. */
export function createYoungCollection(): () => void {
  setFlagsFromString("--expose-gc");
  try {
    const collect = runInNewContext("gc") as NodeJS.GCFunction;
    return () => void collect({ type: "minor" });
  } finally {
    setFlagsFromString("--no-expose-gc");
  }
}

/** Work that outlives the request that began it. */
export interface Pending {
  /** Keeps a promise in mind until it settles; resolves and rejects as it does. */
  track<T>(work: Promise<T>): Promise<T>;
  /** Resolves when all of it has settled. */
  settled(): Promise<void>;
}

/** Creates an empty list of pending work. */
export function createPending(): Pending {
  const pending = new Set<Promise<unknown>>();
  return {
    track(work) {
      pending.add(work);
      const forget = () => void pending.delete(work);
      work.then(forget, forget);
      return work;
    },
    async settled() {
      // What ends may have begun something else.
      while (pending.size > 0) await Promise.allSettled(pending);
    },
  };
}
