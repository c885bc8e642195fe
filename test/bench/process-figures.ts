import { readdirSync, readFileSync, writeFileSync } from "node:fs";

/** A process's use of processors, in microseconds. */
export interface CpuFigures {
  /** For which all its threads ran. */
  readonly ranUs: number;
  /** For which its main thread stood ready and had to wait for the core. */
  readonly waitedUs: number;
}

/** From the scheduler's own account (https://docs.kernel.org/scheduler/sched-stats.html), in nanoseconds there. */
export function cpuOf(pid: number): CpuFigures {
  let ranNs = 0;
  let waitedNs = 0;
  for (const thread of readdirSync(`/proc/${pid}/task`)) {
    const [ran, waited] = readFileSync(`/proc/${pid}/task/${thread}/schedstat`, "utf8").split(" ");
    ranNs += Number(ran);
    if (thread === String(pid)) waitedNs = Number(waited);
  }
  return { ranUs: ranNs / 1000, waitedUs: waitedNs / 1000 };
}

/** Largest resident memory since {@link forgetPeak}, in MiB. */
export function peakMibOf(pid: number): number {
  const kib = /^VmHWM:\s+(\d+) kB$/m.exec(readFileSync(`/proc/${pid}/status`, "utf8"))?.[1];
  return Math.round(Number(kib) / 1024);
}

/** Lets the peak of memory begin anew (https://man7.org/linux/man-pages/man5/proc_pid_clear_refs.5.html). */
export function forgetPeak(pid: number): void {
  writeFileSync(`/proc/${pid}/clear_refs`, "5");
}
