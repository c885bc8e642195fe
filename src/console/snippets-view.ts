import { copyButton } from "./copy-button.js";
import { html, nothing, type TemplateResult } from "./lit-html.js";
import type { Snippet } from "./snippets.js";

/** Shows one of the snippets, and lets it be copied. @param onChoose gets the name of another one. */
export function snippetsView(
  snippets: readonly Snippet[],
  chosen: string,
  onChoose: (name: string) => void,
): TemplateResult {
  const shown = snippets.find(({ name }) => name === chosen) ?? snippets[0];
  const choice = ({ name }: Snippet) =>
    html`<label class="choice">
      <input type="radio" name="snippet" value=${name} ?checked=${name === shown?.name} @change=${() => onChoose(name)} />
      ${name}
    </label>`;
  return html`<section aria-labelledby="snippets">
    <h2 id="snippets">The same call from elsewhere</h2>
    <fieldset class="choices">
      <legend class="unseen">Show it as</legend>
      ${snippets.map(choice)}
    </fieldset>
    <pre id="snippet" tabindex="0" role="region" aria-label="The call as ${shown?.name}">${shown?.text}</pre>
    ${shown?.text.includes("RELAY_PRIVATE_KEY") ? KEY_HINT : nothing}
    <p>${copyButton(`Copy as ${shown?.name}`, shown?.text ?? "", "snippet")}</p>
  </section>`;
}

const KEY_HINT = html`<p class="hint">
  The private key is not copied: set the variable <code>RELAY_PRIVATE_KEY</code> to it before you run this.
</p>`;
