import { html, type TemplateResult } from "./lit-html.js";
import type { Pages } from "./pages.js";

/** Buttons to the pages before and after. @param onTurn is to load the page that `pages` leads to then. */
export function pager(pages: Pages, isBusy: boolean, onTurn: () => void): TemplateResult {
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
