import type { ChildProcess } from "node:child_process";
import { scriptOf } from "./build.js";
import { nextMessage, startPinned, stopPinned } from "./pinned-process.js";
import type { SubjectName } from "./points.js";
import { type Subject, startSubject } from "./subject.js";
import { startYardstick, type Yardstick } from "./yardstick.js";

/** Everything that runs during the benchmark. */
export interface Stage {
  readonly providerPort: number;
  readonly subjects: ReadonlyMap<SubjectName, Subject>;
  readonly load: ChildProcess;
  readonly yardstick: Yardstick;
  close(): Promise<void>;
}

/**
 * Starts provider, load, yardstick and the subjects.
 *
 * @param compared the checkout of `relay-compared`.
 */
export async function startStage(names: ReadonlySet<SubjectName>, compared?: string): Promise<Stage> {
  const closers: Array<() => Promise<void>> = [];
  const close = async () => {
    for (const closer of closers.reverse()) await closer();
  };
  try {
    const provider = startPinned({ core: "other", args: [scriptOf("provider")] });
    closers.push(() => stopPinned(provider));
    const { port: providerPort } = await nextMessage<{ port: number }>(provider);
    const load = startPinned({ core: "other", args: [scriptOf("load")] });
    closers.push(() => stopPinned(load));
    await nextMessage(load);
    const yardstick = await startYardstick();
    closers.push(yardstick.close);
    const subjects = new Map<SubjectName, Subject>();
    for (const name of names) {
      const checkout = name === "relay-compared" ? compared : undefined;
      const subject =
        name === "direct" ? directTo(provider, providerPort) : await startSubject(name, providerPort, checkout);
      subjects.set(name, subject);
      closers.push(subject.close);
    }
    return { providerPort, subjects, load, yardstick, close };
  } catch (error) {
    await close();
    throw error;
  }
}

/** The provider without anybody between: what a subject's latency is added to. */
function directTo(child: ChildProcess, port: number): Subject {
  return {
    name: "direct",
    port,
    pid: child.pid as number,
    child,
    publicKey: "",
    privateKey: "",
    users: 0,
    close: async () => {},
  };
}
