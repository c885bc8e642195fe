import { existsSync, readFileSync } from "node:fs";
import { setFlagsFromString } from "node:v8";
import { runInNewContext } from "node:vm";

/** Ctrl-C reaches a process twice when npm started it: from the terminal, and from npm. In milliseconds. */
export const SAME_KEYPRESS_MS = 500;

/**
 * Resolves at the first SIGINT or SIGTERM; a second one ends the process at once. Call it once.
 *
 * @param beforeExit called before a second signal ends the process.
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

/** Errors whose message is for the operator, by name, so that their classes need not be loaded. */
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

/**
 * The exit code for an error whose message is for the operator: one of ours, or a system error, which names files and
 * addresses. Undefined for any other error.
 */
export function operatorExitCode(error: unknown): FailureCode | undefined {
  if (!(error instanceof Error)) return undefined;
  return OPERATOR_ERRORS.get(error.name) ?? ("syscall" in error ? 1 : undefined);
}

interface Manifest {
  readonly version: string;
  readonly engines: { readonly node: string };
}

/** The version of this package. */
export function packageVersion(): string {
  return readManifest()?.version ?? "unknown";
}

/** The supported versions of Node.js, as an npm range; `*` if unknown. */
export function supportedNode(): string {
  return readManifest()?.engines.node ?? "*";
}

/** Reads package.json, which is above `dist/`, or above `src/` when that runs directly. */
function readManifest(): Manifest | undefined {
  const files = ["../../package.json", "../../../package.json"].map((path) => new URL(path, import.meta.url));
  const file = files.find((candidate) => existsSync(candidate));
  return file === undefined ? undefined : (JSON.parse(readFileSync(file, "utf8")) as Manifest);
}

/**
 * Turns off V8's pretenuring. The objects of a call live as long as the provider takes to answer: with some hundred
 * calls in flight V8 sees them survive minor GCs, and from then on allocates such objects in the old generation, which
 * only the rare, long major GCs clean. Call it before calls are served.
 */
export function keepObjectsYoung(): void {
  setFlagsFromString("--no-allocation-site-pretenuring");
}

/** A minor GC at rest takes a millisecond; under load V8 runs many of its own in this interval. */
const PAUSE_MS = 5000;

/**
 * Runs a minor GC every few seconds for the life of the process. After a start or a load V8's young generation may have
 * grown to 32 MiB; V8 shrinks it only in a GC before which little was allocated, and an idle process has no GCs.
 */
export function shrinkAtRest(): void {
  setInterval(createYoungCollection(), PAUSE_MS).unref();
}

/** Returns a function that runs a minor GC. V8 exposes it only under a flag, which is set and cleared here. */
export function createYoungCollection(): () => void {
  setFlagsFromString("--expose-gc");
  try {
    const collect = runInNewContext("gc") as NodeJS.GCFunction;
    return () => void collect({ type: "minor" });
  } finally {
    setFlagsFromString("--no-expose-gc");
  }
}

/** How long the clock must have kept pace with the monotonic one to count as steady, in milliseconds. */
const STEADY_MS = 5 * 60_000;
/** Clock corrections smaller than this do not count as a jump. Milliseconds. */
const MAX_DRIFT_MS = 5000;

/**
 * Returns a function to call regularly: whether the clock has been steady for some minutes, so that what it says may
 * decide what cannot be undone.
 *
 * @param now milliseconds since the epoch.
 */
export function watchClock(now: () => number): () => boolean {
  let offsetMs = now() - performance.now();
  let steadySince = performance.now();
  return () => {
    const monotonic = performance.now();
    const isJump = Math.abs(now() - monotonic - offsetMs) > MAX_DRIFT_MS;
    offsetMs = now() - monotonic;
    if (isJump) steadySince = monotonic;
    return monotonic - steadySince >= STEADY_MS;
  };
}

/** Work that outlives the request that began it. */
export interface Pending {
  /** Tracks a promise until it settles, and returns it. */
  track<T>(work: Promise<T>): Promise<T>;
  /** Resolves when all tracked work has settled. */
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
      // Work that has settled may have started more.
      while (pending.size > 0) await Promise.allSettled(pending);
    },
  };
}
