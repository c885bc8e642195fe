import type { Api, Session } from "./api.js";
import type { Directory } from "./directory.js";
import { html, nothing, type TemplateResult } from "./lit-html.js";
import type { Loading, PagedList } from "./loading.js";
import { addressOf, countText, visibleLines, visibleText } from "./text.js";

/** Media query for a single-column layout; the same breakpoint as in console.css. */
export const NARROW = "(max-width: 48rem)";

/** One page of the console, with an address of its own. */
export interface View {
  readonly title: string;
  /** Its address changes with each search; the focus then stays where it is. */
  readonly staysInPlace?: boolean;
  /** Called for each address with this view. @param parameters the query of the address, after `?`. */
  enter(parameters: URLSearchParams): void;
  /**
   * Called before the next address: forgets what was answered and typed for this one.
   *
   * @param isStaying the next address is of the same view.
   */
  leave(isStaying: boolean): void;
  render(): TemplateResult;
}

/** Shared by all views. */
export interface ViewContext {
  readonly api: Api;
  readonly session: Session;
  readonly directory: Directory;
  /** Call it after every change of state: renders the whole screen again. */
  readonly update: () => void;
}

/** Opens a view with these parameters. Reloads the view if it is already shown. */
export function navigate(view: string, parameters: Readonly<Record<string, string>>): void {
  const hash = addressOf(view, parameters);
  if (location.hash === hash) dispatchEvent(new Event("hashchange"));
  else location.hash = hash;
}

/** Error notice, announced at once by screen readers. */
export function problemNotice({ problem }: Pick<Loading<unknown>, "problem">): TemplateResult {
  return html`<div role="alert">${problem === undefined ? nothing : html`<p class="notice bad">${visibleText(problem)}</p>`}</div>`;
}

/** Loading indicator. */
export function busyNotice({ isBusy }: Pick<Loading<unknown>, "isBusy">): TemplateResult {
  return html`<p class="hint" role="status">${isBusy ? "Loading…" : ""}</p>`;
}

/** The answer, or that it is awaited; and why the last request failed. */
export function answerView<Value>(found: Loading<Value>, show: (value: Value) => unknown): TemplateResult {
  return html`${problemNotice(found)} ${found.value === undefined ? busyNotice(found) : show(found.value)}`;
}

/** One page of a list, with buttons for the others. */
export function pageView<Page extends { readonly nextPageToken?: string }>(
  found: PagedList<Page>,
  show: (page: Page) => unknown,
): TemplateResult {
  return html`${problemNotice(found)} ${found.value === undefined ? nothing : show(found.value)} ${busyNotice(found)}
    ${pager(found)}`;
}

/** Buttons for the previous and the next page, where there are any. */
function pager({ value, isBusy, back, forward }: PagedList<{ readonly nextPageToken?: string }>) {
  if (value === undefined) return nothing;
  const { tokens, nextPageToken = "" } = value;
  if (tokens.length === 1 && nextPageToken === "") return nothing;
  return html`<nav class="pager" aria-label="Pages of the list">
    <button type="button" ?disabled=${isBusy || tokens.length === 1} @click=${back}>Previous page</button>
    <span role="status">Page ${tokens.length}</span>
    <button type="button" ?disabled=${isBusy || nextPageToken === ""} @click=${forward}>Next page</button>
  </nav>`;
}

/** One entry of a definition list: a name and its content. */
export function step(name: unknown, what: unknown): TemplateResult {
  return html`<div><dt>${name}</dt><dd>${what}</dd></div>`;
}

/** A state in words, with a mark in front so that it does not depend on colour alone. */
export function stateMark(isGood: boolean, text: string): TemplateResult {
  return html`<span class=${isGood ? "state good" : "state care"}>${text}</span>`;
}

/** A word with its explanation, shown on hover and read out by screen readers. */
export function term(word: string, meaning: string): TemplateResult {
  return html`<span class="term" title=${meaning}>${word}<span class="unseen">. ${meaning}</span></span>`;
}

/** A table with this many columns fits on a phone. */
const FEW_COLUMNS = 4;

/** One column of a table. */
export interface Column<Row> {
  readonly label: string;
  /** Explanation of the label, shown on hover and read out by screen readers. */
  readonly about?: string;
  readonly cell: (row: Row) => unknown;
  /** Numbers are right-aligned. */
  readonly isNumeric?: boolean;
  /** Hidden on medium-width screens; see console.css. */
  readonly isDetail?: boolean;
}

/**
 * A table; on narrow screens a table with many columns becomes a list of cards. The ARIA roles are explicit because
 * browsers drop the implicit ones when CSS changes the `display` of a table.
 *
 * @param caption for screen readers only.
 */
export function dataTable<Row>(
  caption: string,
  columns: ReadonlyArray<Column<Row>>,
  rows: readonly Row[],
): TemplateResult {
  return html`<table role="table" class=${columns.length > FEW_COLUMNS ? "cards" : ""}>
    <caption class="unseen">${caption}</caption>
    <thead role="rowgroup">
      <tr role="row">
        ${columns.map((column) => html`<th role="columnheader" scope="col" class=${kindOf(column)}>${column.about === undefined ? column.label : term(column.label, column.about)}</th>`)}
      </tr>
    </thead>
    <tbody role="rowgroup">
      ${rows.map(
        (row) => html`<tr role="row">
          ${columns.map(
            (column) =>
              html`<td role="cell" data-label=${column.label} class=${kindOf(column)}><div>${column.cell(row)}</div></td>`,
          )}
        </tr>`,
      )}
    </tbody>
  </table>`;
}

function kindOf<Row>({ isNumeric, isDetail }: Column<Row>): string {
  return [isNumeric === true ? "number" : "", isDetail === true ? "detail" : ""].join(" ").trim();
}

/** An HTTP message as readable text: first line, header fields, and the body if there is one. Pure. */
export function messageText(
  first: string,
  headers: ReadonlyArray<{ readonly name?: string; readonly value?: string }>,
  body: string,
): string {
  const lines = [first, ...headers.map(({ name = "", value = "" }) => `${name}: ${value}`)];
  return `${lines.map(visibleText).join("\n")}${body === "" ? "" : `\n\n${visibleLines(body)}`}`;
}

const UNITS: ReadonlyArray<readonly [unit: Intl.RelativeTimeFormatUnit, seconds: number]> = [
  ["day", 86_400],
  ["hour", 3600],
  ["minute", 60],
  ["second", 1],
];
const RELATIVE = new Intl.RelativeTimeFormat("en", { numeric: "always" });

/** Relative time in its largest unit: `in 3 hours`, `5 minutes ago`. Pure. */
function distanceText(timeMs: number, nowMs: number): string {
  const seconds = Math.round((timeMs - nowMs) / 1000);
  const [unit, length] = UNITS.find(([, size]) => Math.abs(seconds) >= size) ?? ["second", 1];
  return RELATIVE.format(Math.trunc(seconds / length), unit);
}

/** A duration in its largest unit: `59 minutes`. Pure. */
export function lengthText(ms: number): string {
  const [unit, length] = UNITS.find(([, size]) => ms / 1000 >= size) ?? ["second", 1];
  return countText(Math.trunc(ms / 1000 / length), unit);
}

/** Relative time, with the exact timestamp on hover. @param timestamp RFC 3339, as in ProtoJSON. */
export function moment(timestamp: string | undefined, otherwise: string): TemplateResult {
  if (timestamp === undefined) return html`${otherwise}`;
  return timeElement(timestamp, distanceText(Date.parse(timestamp), Date.now()));
}

/** How long something has lasted, with the timestamp of its start on hover: `for 5 minutes`. */
export function lasting(since: string): TemplateResult {
  return html`for ${timeElement(since, lengthText(Math.max(0, Date.now() - Date.parse(since))))}`;
}

/** Time of day in the browser's time zone, with the exact timestamp on hover. */
export function clockTime(timestamp: string): TemplateResult {
  return timeElement(timestamp, new Date(timestamp).toLocaleTimeString("en-GB"));
}

function timeElement(timestamp: string, text: string): TemplateResult {
  return html`<time datetime=${timestamp} title=${timestamp}>${text}</time>`;
}

/**
 * A button that copies text and confirms it. Where the browser offers no clipboard (plain HTTP from another machine),
 * it selects the text instead, ready to be copied with the keyboard.
 *
 * @param label for screen readers.
 * @param targetId id of the element that shows the text.
 */
export function copyButton(label: string, text: string, targetId: string): TemplateResult {
  async function copy(event: Event): Promise<void> {
    const status = (event.currentTarget as HTMLElement).nextElementSibling;
    const said = await navigator.clipboard?.writeText(text).then(
      () => "Copied.",
      () => undefined,
    );
    if (said === undefined) select(targetId);
    if (status !== null) status.textContent = said ?? "Selected: copy it with the keyboard.";
  }
  return html`<button type="button" aria-label=${label} @click=${copy}>Copy</button> <span role="status"></span>`;
}

function select(id: string): void {
  const element = document.getElementById(id);
  if (element !== null) getSelection()?.selectAllChildren(element);
}
