import { html, svg, type TemplateResult } from "./lit-html.js";
import type { LiveCall } from "./live-call.js";
import { dataTable } from "./view.js";
import { visibleText } from "./visible-text.js";

interface Row {
  readonly outcome: string;
  readonly count: number;
  readonly share: number;
}

/** How the calls ended: successes, and errors by their type, the most frequent first. */
export function outcomeTable(calls: readonly LiveCall[]): TemplateResult {
  const counts = new Map<string, number>();
  for (const { record } of calls) {
    const outcome = record.errorType || "Success";
    counts.set(outcome, (counts.get(outcome) ?? 0) + 1);
  }
  const rows = [...counts]
    .map(([outcome, count]) => ({ outcome, count, share: count / calls.length }))
    .toSorted((one, other) => other.count - one.count);
  return rows.length === 0 ? html`<p>No call yet.</p>` : dataTable("How the calls ended", COLUMNS, rows);
}

const COLUMNS = [
  { label: "Outcome", cell: ({ outcome }: Row) => visibleText(outcome) },
  { label: "Calls", cell: ({ count }: Row) => count, isNumeric: true },
  { label: "Share", cell: shareOf },
];

function shareOf({ outcome, share }: Row): TemplateResult {
  const kind = outcome === "Success" ? "success" : "error";
  return html`<span class="share">
    <svg viewBox="0 0 100 8" aria-hidden="true" preserveAspectRatio="none">
      ${svg`<rect class=${kind} width=${share * 100} height="8" />`}
    </svg>
    <span>${(share * 100).toFixed(share < 0.1 ? 1 : 0)} %</span>
  </span>`;
}
