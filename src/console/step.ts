import { html, type TemplateResult } from "./lit-html.js";

/** One line of a list of steps: its name, and what there is to say. */
export function step(name: string, what: unknown): TemplateResult {
  return html`<div><dt>${name}</dt><dd>${what}</dd></div>`;
}
