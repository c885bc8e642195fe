import { readdirSync, readFileSync, writeFileSync } from "node:fs";

/** A process's use of processors, in microseconds. */
export interface CpuFigures {
  /** For which all threads ran. */
  readonly ranUs: number;
  /** For which its main thread stood ready and had to wait for the core. */
  readonly waitedUs: number;
}

/**
 * From the scheduler's own account (https://docs.kernel.org/scheduler/sched-stats.html), in nanoseconds there. Of a process
 * and those that it has started.
 */
export function cpuOf(pid: number): CpuFigures {
  let ranNs = 0;
  let waitedNs = 0;
  for (const each of familyOf(pid)) {
    for (const thread of readdirSync(`/proc/${each}/task`)) {
      const [ran, waited] = readFileSync(`/proc/${each}/task/${thread}/schedstat`, "utf8").split(" ");
      ranNs += Number(ran);
      if (thread === String(pid)) waitedNs = Number(waited);
    }
  }
  return { ranUs: ranNs / 1000, waitedUs: waitedNs / 1000 };
}

/** Largest resident memory since {@link forgetPeak}, in MiB; that of its children is added. */
export function peakMibOf(pid: number): number {
  const kib = familyOf(pid).map((each) =>
    Number(/^VmHWM:\s+(\d+) kB$/m.exec(readFileSync(`/proc/${each}/status`, "utf8"))?.[1]),
  );
  return Math.round(kib.reduce((sum, each) => sum + each, 0) / 1024);
}

/** What a process holds just now, in MiB (https://man7.org/linux/man-pages/man5/proc_pid_smaps.5.html). */
export interface Memory {
  /** With what it shares with others, as the program of Node.js. */
  readonly rssMib: number;
  /** What would be free without it. */
  readonly privateMib: number;
}

/** Of a process, and behind it of those that it has started. */
export function memoryOf(pid: number): readonly Memory[] {
  return familyOf(pid).map((each) => {
    const rollup = readFileSync(`/proc/${each}/smaps_rollup`, "utf8");
    const mib = (field: string) => Number(new RegExp(`^${field}:\\s+(\\d+) kB$`, "m").exec(rollup)?.[1]) / 1024;
    return { rssMib: mib("Rss"), privateMib: mib("Private_Clean") + mib("Private_Dirty") };
  });
}

/** Lets the peak of memory begin anew (https://man7.org/linux/man-pages/man5/proc_pid_clear_refs.5.html). */
export function forgetPeak(pid: number): void {
  for (const each of familyOf(pid)) writeFileSync(`/proc/${each}/clear_refs`, "5");
}

function familyOf(pid: number): number[] {
  const children = readFileSync(`/proc/${pid}/task/${pid}/children`, "utf8").trim();
  return [pid, ...(children === "" ? [] : children.split(" ").flatMap((child) => familyOf(Number(child))))];
}
