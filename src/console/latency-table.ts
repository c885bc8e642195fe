import { type Figures, figuresOf, msText } from "./figures.js";
import { html, type TemplateResult } from "./lit-html.js";
import type { LiveCall } from "./live-call.js";
import { dataTable } from "./view.js";

interface Row {
  readonly name: string;
  readonly figures: Figures;
}

/** Where the time of the calls went, in numbers. */
export function latencyTable(calls: readonly LiveCall[]): TemplateResult {
  const rows = [
    row("Relay", calls, ({ relayMs }) => relayMs),
    row("Waits for a token or a turn", calls, ({ waitMs }) => waitMs),
    row("Provider", calls, ({ providerMs }) => providerMs),
    row("Whole call", calls, ({ totalMs }) => totalMs),
  ].flat();
  return rows.length === 0 ? html`<p>No call yet.</p>` : dataTable("Where the time went", COLUMNS, rows);
}

function row(name: string, calls: readonly LiveCall[], of: (call: LiveCall) => number): readonly Row[] {
  const figures = figuresOf(calls.map(of));
  return figures === undefined ? [] : [{ name, figures }];
}

const COLUMNS = [
  { label: "Part", cell: ({ name }: Row) => name },
  { label: "Median", cell: ({ figures }: Row) => msText(figures.median), isNumeric: true },
  { label: "95 %", cell: ({ figures }: Row) => msText(figures.p95), isNumeric: true },
  { label: "Longest", cell: ({ figures }: Row) => msText(figures.longest), isNumeric: true },
];
