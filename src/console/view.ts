import type { Api, Session } from "./api.js";
import type { Directory } from "./directory.js";
import { html, nothing, type TemplateResult } from "./lit-html.js";
import type { Loading, Pages } from "./loading.js";
import { countText, visibleLines, visibleText } from "./text.js";

/** Whether there is room for one column alone, as console.css has it. */
export const NARROW = "(max-width: 48rem)";

/** One page of the console, shown under an address of its own. */
export interface View {
  readonly title: string;
  /** Its address changes with what is searched for: the focus stays then. */
  readonly staysInPlace?: boolean;
  /** Shown from now on. @param parameters what stands behind `?` in the address. */
  enter(parameters: URLSearchParams): void;
  /** Not shown any more. */
  leave(): void;
  render(): TemplateResult;
}

/** What views work with. */
export interface ViewContext {
  readonly api: Api;
  readonly session: Session;
  readonly directory: Directory;
  /** Something has changed: everything that is shown is rendered again. */
  readonly update: () => void;
}

/** Leads to a view, with what it is to show in the address; what is empty is left out. Shows it anew where it is already. */
export function navigate(view: string, parameters: Readonly<Record<string, string>>): void {
  const given = Object.entries(parameters).filter(([, value]) => value !== "");
  const hash = `#/${view}${given.length === 0 ? "" : `?${new URLSearchParams(given)}`}`;
  if (location.hash === hash) dispatchEvent(new Event("hashchange"));
  else location.hash = hash;
}

/** What went wrong, said at once to those who listen. */
export function problemNotice({ problem }: Pick<Loading<unknown>, "problem">): TemplateResult {
  return html`<div role="alert">${problem === undefined ? nothing : html`<p class="notice bad">${visibleText(problem)}</p>`}</div>`;
}

/** Says that an answer is on its way. */
export function busyNotice({ isBusy }: Pick<Loading<unknown>, "isBusy">): TemplateResult {
  return html`<p class="hint" role="status">${isBusy ? "Loading…" : ""}</p>`;
}

/**
 * Buttons to the pages before and after, where there are any. @param onTurn is to load the page that `pages` leads to then.
 */
export function pager(pages: Pages, isBusy: boolean, onTurn: () => void): TemplateResult | typeof nothing {
  if (!isBusy && pages.number === 1 && !pages.hasNext) return nothing;
  const turn = (way: "back" | "forward") => () => {
    pages[way]();
    onTurn();
  };
  return html`<nav class="pager" aria-label="Pages of the list">
    <button type="button" ?disabled=${isBusy || pages.number === 1} @click=${turn("back")}>Previous page</button>
    <span role="status">Page ${pages.number}</span>
    <button type="button" ?disabled=${isBusy || !pages.hasNext} @click=${turn("forward")}>Next page</button>
  </nav>`;
}

/** One line of a list of steps: its name, and what there is to say. */
export function step(name: unknown, what: unknown): TemplateResult {
  return html`<div><dt>${name}</dt><dd>${what}</dd></div>`;
}

/** A state in words, with a mark in front that does not depend on colour. */
export function stateMark(isGood: boolean, text: string): TemplateResult {
  return html`<span class=${isGood ? "state good" : "state care"}>${text}</span>`;
}

/** A word with its meaning, for those who hover over it and for those who listen. */
export function term(word: string, meaning: string): TemplateResult {
  return html`<span class="term" title=${meaning}>${word}<span class="unseen">. ${meaning}</span></span>`;
}

/** They fit side by side on a phone. */
const FEW_COLUMNS = 4;

/** One column of a table. */
export interface Column<Row> {
  readonly label: string;
  /** What the label means, for those who hover or listen. */
  readonly about?: string;
  readonly cell: (row: Row) => unknown;
  /** Numbers stand right, under each other. */
  readonly isNumeric?: boolean;
  /** Left out where it is narrow. */
  readonly isDetail?: boolean;
}

/**
 * A table; one of many columns becomes a list of cards where it is narrow. The roles are written out, since a browser forgets them when
 * a table is no longer laid out as one.
 *
 * @param caption for those who do not see it.
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

/** A message of HTTP as people read it: its first line, its header fields, and its body where there is one. Pure. */
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

/** How far a moment is from now, in its largest unit: `in 3 hours`, `5 minutes ago`. Pure. */
function distanceText(timeMs: number, nowMs: number): string {
  const seconds = Math.round((timeMs - nowMs) / 1000);
  const [unit, length] = UNITS.find(([, size]) => Math.abs(seconds) >= size) ?? ["second", 1];
  return RELATIVE.format(Math.trunc(seconds / length), unit);
}

/** A length of time in its largest unit: `59 minutes`. Pure. */
export function lengthText(ms: number): string {
  const [unit, length] = UNITS.find(([, size]) => ms / 1000 >= size) ?? ["second", 1];
  return countText(Math.trunc(ms / 1000 / length), unit);
}

/** A moment as a person reads it, with the exact one behind it. @param timestamp RFC 3339, as ProtoJSON has it. */
export function moment(timestamp: string | undefined, otherwise: string): TemplateResult {
  if (timestamp === undefined) return html`${otherwise}`;
  const text = distanceText(Date.parse(timestamp), Date.now());
  return html`<time datetime=${timestamp} title=${timestamp}>${text}</time>`;
}

/** A time of day, in the browser's own time zone. */
export function clockTime(timestamp: string): TemplateResult {
  return html`<time datetime=${timestamp} title=${timestamp}>${new Date(timestamp).toLocaleTimeString("en-GB")}</time>`;
}

/**
 * Copies text, and says so. Where the browser gives no clipboard (cleartext on another machine), the text is selected
 * instead, so that a key copies it.
 *
 * @param label what a screen reader says; `targetId` the element that shows the text.
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
