import type { ResultRowJson } from "../../gen/relay/v1/relay_pb.js";
import { html, nothing, type TemplateResult } from "./lit-html.js";
import { stateMark } from "./state-mark.js";
import { visibleLines, visibleText } from "./visible-text.js";

/** More of an answer is laid out by no browser in a moment, and read by nobody. In characters. */
const MAX_SHOWN = 50_000;

/** The row that came back. */
export function rowView(row: ResultRowJson): TemplateResult {
  const { pincStatus, statusCode = 0, errorType = "", inernalError = "", callId = "", contentType = "" } = row;
  const isGood = pincStatus === "success";
  return html`<section aria-labelledby="row">
    <h2 id="row" tabindex="-1">This came back</h2>
    <p>
      ${stateMark(isGood, `${isGood ? "Success" : visibleText(errorType)}, status ${statusCode}`)}${contentType === "" ? nothing : html`, ${visibleText(contentType)}`}
    </p>
    ${inernalError === "" ? nothing : html`<p>${visibleText(inernalError)}</p>`} ${dataView(row)} ${headersView(row)}
    <p class="hint">Call id <span class="id">${visibleText(callId)}</span></p>
  </section>`;
}

function dataView({
  data,
  dataEncoding = "",
  possiblyTruncated = false,
}: ResultRowJson): TemplateResult | typeof nothing {
  if (data === undefined) return nothing;
  const text = typeof data === "string" ? data : JSON.stringify(data, undefined, 2);
  const shown = visibleLines(text.slice(0, MAX_SHOWN));
  return html`<pre tabindex="0" role="region" aria-label="Answer of the provider">${shown}</pre>
    ${possiblyTruncated ? html`<p class="hint">Its end may be missing: the provider gave it no length.</p>` : nothing}
    ${dataEncoding === "" ? nothing : html`<p class="hint">As ${visibleText(dataEncoding)}.</p>`}
    ${text.length > MAX_SHOWN ? html`<p class="hint">The first ${MAX_SHOWN} of ${text.length} characters.</p>` : nothing}`;
}

function headersView({ headers = {} }: ResultRowJson): TemplateResult | typeof nothing {
  const fields = Object.entries(headers);
  if (fields.length === 0) return nothing;
  const text = fields.map(([name, value]) => visibleText(`${name}: ${value}`)).join("\n");
  return html`<details>
    <summary>${fields.length} header fields</summary>
    <pre tabindex="0" role="region" aria-label="Header fields of the answer">${text}</pre>
  </details>`;
}
