import { type Column, dataTable } from "./data-table.js";
import { msText } from "./figures.js";
import { html, type TemplateResult } from "./lit-html.js";
import type { LiveCall } from "./live-call.js";
import { clockTime } from "./moments.js";
import { stateMark } from "./state-mark.js";
import { visibleText } from "./visible-text.js";

/** Rows that a browser lays out each second without effort. */
const MAX_ROWS = 50;

/** The last calls, newest first. */
export function callList(calls: readonly LiveCall[]): TemplateResult {
  return calls.length === 0
    ? html`<p>No call yet. Calls appear here as they end.</p>`
    : dataTable("Last calls", COLUMNS, calls.slice(0, MAX_ROWS));
}

const COLUMNS: ReadonlyArray<Column<LiveCall>> = [
  { label: "Time", cell: ({ record }) => clockTime(record.startTime ?? "") },
  { label: "Provider", cell: ({ record }) => visibleText(record.providerName ?? "") },
  { label: "Call", cell: targetOf },
  { label: "Outcome", cell: outcomeOf },
  { label: "Whole call", cell: ({ totalMs }) => msText(totalMs), isNumeric: true },
  { label: "Relay", cell: ({ relayMs }) => msText(relayMs), isNumeric: true },
  { label: "Provider’s part", cell: ({ providerMs }) => msText(providerMs), isNumeric: true },
  { label: "Came in by", cell: ({ record }) => visibleText(record.surface ?? "") },
];

function targetOf({ record: { method = "", origin = "", path = "", queryKeys = [] } }: LiveCall): TemplateResult {
  if (origin === "")
    return html`<span class="id">${visibleText(method)}</span> <span class="hint">(refused; its url is not recorded)</span>`;
  const query = queryKeys.length === 0 ? "" : `?${queryKeys.map((key) => `${key}=…`).join("&")}`;
  return html`<span class="id">${visibleText(`${method} ${origin}${path}${query}`)}</span>`;
}

function outcomeOf({ record: { statusCode = 0, errorType = "", cause = "" } }: LiveCall): TemplateResult {
  if (errorType === "") return stateMark(true, String(statusCode));
  return stateMark(false, `${statusCode} ${visibleText(errorType)}${cause === "" ? "" : ` (${visibleText(cause)})`}`);
}
