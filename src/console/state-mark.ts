import { html, type TemplateResult } from "./lit-html.js";

/** A state in words, with a mark in front that does not depend on colour. */
export function stateMark(isGood: boolean, text: string): TemplateResult {
  return html`<span class=${isGood ? "state good" : "state care"}>${text}</span>`;
}
