import type { ChildProcess } from "node:child_process";
import { scriptOf } from "./build.js";
import { nextMessage, startPinned, stopPinned } from "./pinned-process.js";
import { isCompared, type Setup, type SubjectName } from "./points.js";
import { type Providers, startProviders } from "./providers.js";
import { type Subject, startSubject } from "./subject.js";
import { startYardstick, type Yardstick } from "./yardstick.js";

/** Everything that runs during the benchmark. */
export interface Stage {
  readonly providers: Providers;
  readonly load: ChildProcess;
  readonly yardstick: Yardstick;
  subject(name: SubjectName, setup: Setup): Subject;
  close(): Promise<void>;
}

/** Who has to be there. */
export type Cast = ReadonlyArray<{ readonly name: SubjectName; readonly setup: Setup }>;

/**
 * Starts provider, load, yardstick and the subjects, each once for each setup.
 *
 * @param compared the checkout of those of another commit.
 */
export async function startStage(cast: Cast, compared?: string): Promise<Stage> {
  const closers: Array<() => Promise<void>> = [];
  const close = async () => {
    for (const closer of closers.reverse()) await closer();
  };
  try {
    const providers = await startProviders();
    closers.push(providers.close);
    const load = await startLoad(providers);
    closers.push(() => stopPinned(load));
    const yardstick = await startYardstick();
    closers.push(yardstick.close);
    const subjects = new Map<string, Subject>();
    for (const { name, setup } of cast) {
      if (subjects.has(keyOf(name, setup))) continue;
      const checkout = isCompared(name) ? compared : undefined;
      const subject =
        name === "direct" ? directTo(providers, setup) : await startSubject(name, providers, setup, checkout);
      subjects.set(keyOf(name, setup), subject);
      closers.push(subject.close);
    }
    return { providers, load, yardstick, close, subject: (...which) => subjects.get(keyOf(...which)) as Subject };
  } catch (error) {
    await close();
    throw error;
  }
}

function keyOf(name: SubjectName, { provider, callers }: Setup): string {
  return `${name} ${provider} ${callers}`;
}

/** Starts a process that makes calls. */
export async function startLoad({ trust }: Providers): Promise<ChildProcess> {
  const load = startPinned({ core: "other", args: [scriptOf("load")], env: trust });
  await nextMessage(load);
  return load;
}

/** The provider without anybody between: what a subject's latency is added to. */
function directTo(providers: Providers, setup: Setup): Subject {
  const { child, port } = providers[setup.provider];
  return {
    name: "direct",
    port,
    pid: child.pid as number,
    child,
    publicKey: "",
    privateKey: "",
    users: 0,
    endedUsers: 0,
    close: async () => {},
  };
}
