import type { Comparison, Summary, SummaryRow } from "./summary.js";

type Column = readonly [head: string, cell: (row: SummaryRow) => string];

const COLUMNS: readonly Column[] = [
  ["point", ({ point }) => point],
  ["subject", ({ subject }) => subject],
  ["CPU µs/call", ({ cpuUs }) => cpuUs.toFixed(cpuUs < 1000 ? 1 : 0)],
  ["callers' CPU", ({ callersCpuUs }) => callersCpuUs.toFixed(callersCpuUs < 1000 ? 1 : 0)],
  ["ratio", ({ ratio }) => ratio?.toFixed(2) ?? ""],
  [
    "quartiles",
    ({ ratioLow, ratioHigh }) => (ratioLow === undefined ? "" : `${ratioLow.toFixed(2)}–${ratioHigh?.toFixed(2)}`),
  ],
  ["to", ({ base, ratio }) => (ratio === undefined ? "" : base)],
  ["aim", ({ target }) => (target === undefined ? "" : `≤ ${target}`)],
  ["calls/s", ({ callsPerSecond }) => callsPerSecond.toFixed(0)],
  ["+p50 µs", ({ addedP50Us }) => addedP50Us.toFixed(0)],
  ["+p99 µs", ({ addedP99Us }) => addedP99Us.toFixed(0)],
  ["peak MiB", ({ peakMib }) => String(peakMib)],
  ["disturbed", ({ disturbed }) => (disturbed === 0 ? "" : String(disturbed))],
];

/** A run for people to read. */
export function tableFrom(summary: Summary): string {
  const cells = [COLUMNS.map(([head]) => head), ...summary.rows.map((row) => COLUMNS.map(([, cell]) => cell(row)))];
  const widths = COLUMNS.map((_, at) => Math.max(...cells.map((row) => row[at]?.length ?? 0)));
  const lines = cells.map((row) =>
    row.map((cell, at) => (at < 2 ? cell.padEnd(widths[at] ?? 0) : cell.padStart(widths[at] ?? 0))).join("  "),
  );
  const holds = Object.entries(summary.loopHoldMs).map(
    ([point, bySubject]) =>
      `  ${point}: ${Object.entries(bySubject)
        .map(([subject, ms]) => `${subject} ${ms.toFixed(1)} ms`)
        .join(", ")}`,
  );
  const hold = holds.length === 0 ? "" : `\nlongest hold of the event loop\n${holds.join("\n")}\n`;
  const { compared } = summary;
  const comparison =
    compared === undefined
      ? ""
      : `\nCPU per call as a ratio to ${compared.commit}: median and quartiles of ${summary.rounds} rounds\n${compared.points.map(comparisonLine).join("\n")}\n`;
  return `${lines.join("\n")}\n${hold}${comparison}`;
}

function comparisonLine({ point, subject, low, median, high }: Comparison): string {
  const verdict = low > 1 ? "costs more" : high < 1 ? "costs less" : "within the noise";
  return `  ${point}, ${subject}: ${median.toFixed(3)} (${low.toFixed(3)} to ${high.toFixed(3)}), ${verdict}`;
}
