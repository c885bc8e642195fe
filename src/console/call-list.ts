import type { CallRecordJson } from "../../gen/relay/admin/v1/call_record_pb.js";
import { msText } from "./figures.js";
import { html, nothing, type TemplateResult } from "./lit-html.js";
import type { LiveCall } from "./live-call.js";
import { clockTime } from "./moments.js";
import { type Column, dataTable, stateMark } from "./view.js";
import { visibleText } from "./visible-text.js";

/** Method and url of a call, with the names of its query's parameters alone. */
export function targetOf({ method = "", origin = "", path = "", queryKeys = [] }: CallRecordJson): TemplateResult {
  if (origin === "")
    return html`<span class="id">${visibleText(method)}</span> <span class="hint">(refused; its url is not recorded)</span>`;
  const query = queryKeys.length === 0 ? "" : `?${queryKeys.map((key) => `${key}=…`).join("&")}`;
  return html`<span class="id">${visibleText(`${method} ${origin}${path}${query}`)}</span>`;
}

/** How a call ended. */
export function outcomeOf({ statusCode = 0, errorType = "", cause = "" }: CallRecordJson): TemplateResult {
  if (errorType === "") return stateMark(true, String(statusCode));
  return stateMark(false, `${statusCode} ${visibleText(errorType)}${cause === "" ? "" : ` (${visibleText(cause)})`}`);
}

/** Address of the view of one call's record. Pure. */
function callAddress(callId: string): string {
  return `#/call?${new URLSearchParams({ callId })}`;
}

/** What a person takes in. */
const FEW_ROWS = 20;
/** Where each is a card, as console.css has it. */
const FEW_CARDS = 10;
const NARROW = "(max-width: 48rem)";
/** Rows that a browser lays out each second without effort. */
const MAX_ROWS = 50;

/** How much of the list is shown. */
export interface ListLength {
  readonly isLong: boolean;
  readonly toggle: () => void;
}

/** The last calls, newest first; each leads to its record. */
export function callList(calls: readonly LiveCall[], { isLong, toggle }: ListLength): TemplateResult {
  if (calls.length === 0) return html`<p>No call yet. Calls appear here as they end.</p>`;
  const few = matchMedia(NARROW).matches ? FEW_CARDS : FEW_ROWS;
  const shown = calls.slice(0, isLong ? MAX_ROWS : few);
  return html`${dataTable("Last calls", COLUMNS, shown)}
    ${calls.length <= few ? nothing : html`<p class="actions"><button type="button" aria-expanded=${isLong} @click=${toggle}>${isLong ? "Show fewer calls" : "Show more calls"}</button></p>`}`;
}

const COLUMNS: ReadonlyArray<Column<LiveCall>> = [
  { label: "Time", cell: ({ record }) => clockTime(record.startTime ?? "") },
  { label: "Provider", cell: ({ record }) => visibleText(record.providerName ?? "") },
  { label: "Call", cell: ({ record }) => html`<a href=${callAddress(record.callId ?? "")}>${targetOf(record)}</a>` },
  { label: "Outcome", cell: ({ record }) => outcomeOf(record) },
  { label: "Whole call", cell: ({ totalMs }) => msText(totalMs), isNumeric: true },
  { label: "Relay", cell: ({ relayMs }) => msText(relayMs), isNumeric: true, isDetail: true },
  { label: "Provider’s part", cell: ({ providerMs }) => msText(providerMs), isNumeric: true, isDetail: true },
  { label: "Came in by", cell: ({ record }) => visibleText(record.surface ?? ""), isDetail: true },
];
