import { html, type TemplateResult } from "./lit-html.js";

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
