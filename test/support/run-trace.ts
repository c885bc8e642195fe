import { type Profiler, Session } from "node:inspector/promises";

/** Runs of the same thing: what a timer does beside one of them is not in all. */
const RUNS = 4;

/** A function of src as V8 knows it. */
interface Entered {
  /** `folder/file.ts:function`, the path within src/. */
  readonly place: string;
  readonly scriptId: string;
  /** Where it starts in the script that runs, in characters. */
  readonly start: number;
}

/** Something that may be done again and again, with what makes it possible each time. */
export interface Repeatable {
  readonly prepare?: () => Promise<unknown>;
  readonly run: () => Promise<unknown>;
}

/**
 * The functions of src, but for the sandbox provider, that this process enters whenever it does something, in the order
 * of their first entry: counted by V8, then put in order by breakpoints that note an entry and never stop.
 *
 * @param isWanted which of them count, by `folder/file.ts:function`.
 */
export async function functionsEntered(
  repeatable: Repeatable,
  isWanted: (place: string) => boolean = () => true,
): Promise<string[]> {
  const session = new Session();
  session.connect();
  try {
    const entered = (await countEntries(session, repeatable)).filter(({ place }) => isWanted(place));
    await session.post("Debugger.enable");
    const sources = new Map<string, string>();
    for (const each of entered) {
      const source = sources.get(each.scriptId) ?? (await session.post("Debugger.getScriptSource", each)).scriptSource;
      await markEntry(session, each, sources.set(each.scriptId, source).get(each.scriptId) ?? "");
    }
    await repeat(repeatable);
    return await entriesIn(repeatable);
  } finally {
    session.disconnect();
  }
}

async function repeat({ prepare, run }: Repeatable): Promise<void> {
  await prepare?.();
  await run();
}

async function countEntries(session: Session, { prepare, run }: Repeatable): Promise<Entered[]> {
  await session.post("Profiler.enable");
  await session.post("Profiler.startPreciseCoverage", { callCount: true, detailed: false });
  let inAll: Map<string, Entered> | undefined;
  for (let at = 0; at < RUNS; at += 1) {
    await prepare?.();
    await session.post("Profiler.takePreciseCoverage");
    await run();
    const { result } = await session.post("Profiler.takePreciseCoverage");
    const now = new Map(result.flatMap(enteredOf).map((each) => [`${each.scriptId}:${each.start}`, each]));
    inAll = inAll === undefined ? now : new Map([...inAll].filter(([key]) => now.has(key)));
  }
  await session.post("Profiler.stopPreciseCoverage");
  return [...(inAll?.values() ?? [])];
}

function enteredOf({ url, scriptId, functions }: Profiler.ScriptCoverage): Entered[] {
  const file = /\/src\/((?!sandbox\/)[^?]+\.ts)/.exec(url)?.[1];
  if (file === undefined) return [];
  return functions
    .filter(({ ranges }) => (ranges[0]?.count ?? 0) > 0)
    .map(({ functionName, ranges }) => ({
      place: `${file}:${functionName.replace(/^(?:get )?#?/, "")}`,
      scriptId,
      start: ranges[0]?.startOffset ?? 0,
    }));
}

/** Sets a breakpoint at the start of a function whose condition notes the entry, and is false. */
async function markEntry(session: Session, { place, scriptId, start }: Entered, source: string): Promise<void> {
  const before = source.slice(0, start).split("\n");
  const from = { scriptId, lineNumber: before.length - 1, columnNumber: before.at(-1)?.length ?? 0 };
  const { locations } = await session.post("Debugger.getPossibleBreakpoints", {
    start: from,
    restrictToFunction: true,
  });
  const [location] = locations;
  if (location === undefined) return;
  const condition = `globalThis.noteEntry?.(${JSON.stringify(place)}), false`;
  await session.post("Debugger.setBreakpoint", { location, condition });
}

/** What the breakpoints note while something is done once. */
async function entriesIn({ prepare, run }: Repeatable): Promise<string[]> {
  const seen = new Set<string>();
  await prepare?.();
  Object.assign(globalThis, { noteEntry: (place: string) => void seen.add(place) });
  await run().finally(() => Reflect.deleteProperty(globalThis, "noteEntry"));
  return [...seen];
}
