import { html, nothing, type TemplateResult } from "./lit-html.js";
import type { Loading } from "./loading.js";
import { visibleText } from "./visible-text.js";

/** What went wrong, said at once to those who listen. */
export function problemNotice({ problem }: Pick<Loading<unknown>, "problem">): TemplateResult {
  return html`<div role="alert">${problem === undefined ? nothing : html`<p class="notice bad">${visibleText(problem)}</p>`}</div>`;
}

/** Says that an answer is on its way. */
export function busyNotice({ isBusy }: Pick<Loading<unknown>, "isBusy">): TemplateResult {
  return html`<p class="hint" role="status">${isBusy ? "Loading…" : ""}</p>`;
}
