import { readFileSync, writeFileSync } from "node:fs";
import { fileURLToPath } from "node:url";
import type { Summary, SummaryRow } from "../bench/summary.js";

/** The command that writes the figures of docs/performance.md from the summary of a run of `npm run bench`. */
export const REWRITE = "npx tsx test/support/performance-table.ts";

/** The summary that the figures of docs/performance.md are from. */
export const SUMMARY = "test/bench/results/summary.json";

/** The document that has the figures. */
export const DOCUMENT = "docs/performance.md";

const MARKS = ["<!-- performance -->\n", "<!-- /performance -->"] as const;

/** A core that does nothing else is full at 1,000,000 µs a second; kept below, calls do not queue. */
const USED_SHARE = 0.6;
const WANTED_PER_SECOND = 10_000;

const KINDS: Readonly<Record<string, string>> = {
  "json-1k": "JSON route, 1 KiB, 32 callers",
  "json-1k-1-caller": "JSON route, 1 KiB, 1 caller",
  "json-1k-256-callers": "JSON route, 1 KiB, 256 callers",
  "json-1k-1-user": "JSON route, 1 KiB, one user",
  "json-1k-call-token": "JSON route, 1 KiB, one user, with a call token",
  "json-100k": "JSON route, 100 KiB",
  "json-10m": "JSON route, 10 MiB",
  "binary-1k": "JSON route, 1 KiB that is no JSON",
  "error-row": "JSON route, refused: no connection",
  "via-1k": "pass-through, 1 KiB, one user, with a call token",
  "via-10m": "pass-through, 10 MiB, one user, with a call token",
  "grpc-body-1k": "gRPC, `body`, 1 KiB",
  "grpc-data-1k": "gRPC, `data`, 1 KiB",
  "connect-body-1k": "Connect binary, `body`, 1 KiB",
  "connect-data-1k": "Connect binary, `data`, 1 KiB",
  "connect-json-body-1k": "Connect JSON, `body`, 1 KiB",
  "connect-json-data-1k": "Connect JSON, `data`, 1 KiB",
  "postgres-1k": "JSON route, 1 KiB, tokens in PostgreSQL (its own CPU not counted)",
  "million-1k": "JSON route, 1 KiB, 1,000,000 connections stored",
  "postgres-million-1k": "JSON route, 1 KiB, 1,000,000 connections in PostgreSQL (its own CPU not counted)",
  "json-1k-https": "JSON route, 1 KiB, TLS to the provider",
  "json-1k-https-both": "JSON route, 1 KiB, TLS to the provider and with callers",
  "json-mixed": "JSON route, answers of 1, 10 and 100 KiB, six to three to one",
  "refreshes-1k": "JSON route, 1 KiB, a refresh before one call in a hundred",
  "workers-1k": "JSON route, 1 KiB, two workers",
};

const SUBJECTS: Readonly<Record<string, string>> = {
  bare: "the bare relay",
  "http-proxy": "http-proxy-3",
  fastify: "@fastify/http-proxy",
  "grpc-js": "the relay on @grpc/grpc-js",
};

/** By the point that is compared with. */
const OWN_BASES: Readonly<Record<string, string>> = {
  "json-1k": "the JSON route at 1 KiB",
  "json-1k-1-user": "the same without a token",
  "json-1k-call-token": "the JSON route with a call token",
};

/** On-demand settings are no row of their own. */
const RELAYS: ReadonlySet<string> = new Set([
  "relay",
  "relay-refreshing",
  "relay-workers",
  "relay-postgres",
  "relay-million",
  "relay-postgres-million",
]);

/** The text between the marks of docs/performance.md: the table, and what follows from it for a size. */
export function performanceText(summary: Summary): string {
  const rows = summary.rows.filter(({ point, subject }) => RELAYS.has(subject) && point in KINDS);
  const lines = rows.map((row) => `| ${cellsOf(row, summary).join(" | ")} |\n`);
  const { machine, rounds, at } = summary;
  return `| Work | CPU µs a call | Against | Others, against the same | Callers' own CPU |
|---|---|---|---|---|
${lines.join("")}
Medians of ${rounds} rounds, with quartiles, on ${at.slice(0, 10)}: ${machine["cores"]} cores of ${String(machine["cpu"]).trim()}, Node.js ${machine["node"]}, relay and load on a core
each, SQLite, log at \`info\`. Something else was running on the machine in ${disturbedText(summary)} of the measurements.
${pauseText(summary)}${sizeText(summary)}`;
}

function cellsOf(row: SummaryRow, { rows }: Summary): string[] {
  const [base = "", point = ""] = row.base.split(" ");
  const others = rows.filter(
    ({ point, subject }) =>
      point === row.point && subject !== base && ["bare", "http-proxy", "fastify"].includes(subject),
  );
  return [
    KINDS[row.point] ?? row.point,
    Math.round(row.cpuUs).toLocaleString("en"),
    row.ratio === undefined
      ? ""
      : `${row.ratio.toFixed(2)} × ${SUBJECTS[base] ?? OWN_BASES[point] ?? row.base}${spreadOf(row)}`,
    others.map(({ subject, ratio }) => `${SUBJECTS[subject]} ${ratio?.toFixed(2)}`).join(", "),
    Math.round(row.callersCpuUs).toLocaleString("en"),
  ];
}

/** The part of all measurements in which the machine was disturbed. */
function disturbedText({ rows, rounds }: Summary): string {
  const disturbed = rows.reduce((sum, row) => sum + row.disturbed, 0);
  return `${Math.round((100 * disturbed) / (rows.length * rounds))} %`;
}

function spreadOf({ ratioLow, ratioHigh }: SummaryRow): string {
  return ratioLow === undefined || ratioHigh === undefined
    ? ""
    : ` (${ratioLow.toFixed(2)} to ${ratioHigh.toFixed(2)})`;
}

/** Latency of a call after a pause, which is what kept sockets are for. */
function pauseText({ rows }: Summary): string {
  const pauses = [...new Set(rows.flatMap(({ point }) => /^pause-(\d+)s$/.exec(point)?.[1] ?? []))];
  if (pauses.length === 0) return "";
  const lines = pauses.map((seconds) => {
    const cells = ["relay", "bare", "http-proxy"].map((name) => {
      const row = rows.find(({ point, subject }) => point === `pause-${seconds}s` && subject === name);
      return row === undefined ? "" : `${(row.addedP50Us / 1000).toFixed(0)} ms`;
    });
    return `| ${seconds} s | ${cells.join(" | ")} |\n`;
  });
  return `
What is added to a call after a pause, where a round trip to the provider takes 20 ms, with TLS:

| Pause | The relay | The bare relay | http-proxy-3 |
|---|---|---|---|
${lines.join("")}`;
}

/** The arithmetic of a size, with the measured figure. */
function sizeText({ rows }: Summary): string {
  const small = rows.find(({ point, subject }) => point === "json-1k" && subject === "relay");
  if (small === undefined) return "";
  const perCore = (USED_SHARE * 1_000_000) / small.cpuUs;
  return `
So one core carries about ${rounded(1_000_000 / small.cpuUs)} such calls a second when it is full, and ${rounded(perCore)} at ${USED_SHARE * 100} % of it, where calls do not yet wait for
each other. ${WANTED_PER_SECOND.toLocaleString("en")} calls a second are ${WANTED_PER_SECOND.toLocaleString("en")} × ${small.cpuUs.toFixed(0)} µs = ${((WANTED_PER_SECOND * small.cpuUs) / 1e6).toFixed(2)} cores of work: ${Math.ceil(WANTED_PER_SECOND / perCore)} cores at ${USED_SHARE * 100} %.
`;
}

function rounded(number: number): string {
  return (Math.round(number / 100) * 100).toLocaleString("en");
}

/** The document with this text between its marks. */
export function withPerformance(document: string, text: string): string {
  const start = document.indexOf(MARKS[0]) + MARKS[0].length;
  return document.slice(0, start) + text + document.slice(document.indexOf(MARKS[1], start));
}

if (process.argv[1] === fileURLToPath(import.meta.url)) {
  const summary: Summary = JSON.parse(readFileSync(SUMMARY, "utf8"));
  writeFileSync(DOCUMENT, withPerformance(readFileSync(DOCUMENT, "utf8"), performanceText(summary)));
}
