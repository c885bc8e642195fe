import type {
  CallCaptureJson,
  CapturedBodyJson,
  CapturedHeaderJson,
  CapturedRequestJson,
  CapturedResponseJson,
} from "../../gen/relay/admin/v1/call_record_pb.js";
import { html, nothing, type TemplateResult } from "./lit-html.js";
import { messageText } from "./message-text.js";
import { visibleText } from "./visible-text.js";

/** Headers and bodies of one call. The relay has taken the credentials out of them. */
export function captureView({ request = {}, response, message = "" }: CallCaptureJson): TemplateResult {
  return html`<section aria-label="Capture">
    <h2>${request.sent === true ? "What was sent" : "What was asked for, and not sent"}</h2>
    ${requestView(request)}
    <h2>What came back</h2>
    ${message === "" ? nothing : html`<p>${visibleText(message)}</p>`}
    ${response === undefined ? html`<p>The provider did not answer.</p>` : responseView(response)}
    <p class="hint">
      Credentials are shown as <code>[masked]</code>, the token inside of texts as <code>[redacted]</code>. A capture is
      kept for a day.
    </p>
  </section>`;
}

function requestView({ method = "", url = "", headers = [], body }: CapturedRequestJson): TemplateResult {
  return messageView("Request to the provider", `${method} ${url}`, headers, body);
}

function responseView({ statusCode = 0, headers = [], body }: CapturedResponseJson): TemplateResult {
  return messageView("Answer of the provider", `Status ${statusCode}`, headers, body);
}

function messageView(
  label: string,
  first: string,
  headers: readonly CapturedHeaderJson[],
  body: CapturedBodyJson | undefined,
): TemplateResult {
  return html`<pre tabindex="0" role="region" aria-label=${label}>${messageText(first, headers, body?.text ?? "")}</pre>
    <p class="hint">${bodyHint(body)}</p>`;
}

function bodyHint(body: CapturedBodyJson | undefined): string {
  if (body === undefined) return "No body.";
  const { sizeBytes = "0", text = "", truncated = false } = body;
  const size = `${Number(sizeBytes).toLocaleString("en")} bytes of body`;
  if (text === "" && sizeBytes !== "0") return `${size}, no text.`;
  return truncated ? `${size}, of which the beginning is shown.` : `${size}.`;
}
