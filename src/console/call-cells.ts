import type { CallRecordJson } from "../../gen/relay/admin/v1/call_record_pb.js";
import { html, type TemplateResult } from "./lit-html.js";
import { stateMark } from "./state-mark.js";
import { visibleText } from "./visible-text.js";

/** Method and url of a call, with the names of its query's parameters alone. */
export function targetOf({ method = "", origin = "", path = "", queryKeys = [] }: CallRecordJson): TemplateResult {
  if (origin === "")
    return html`<span class="id">${visibleText(method)}</span> <span class="hint">(refused; its url is not recorded)</span>`;
  const query = queryKeys.length === 0 ? "" : `?${queryKeys.map((key) => `${key}=…`).join("&")}`;
  return html`<span class="id">${visibleText(`${method} ${origin}${path}${query}`)}</span>`;
}

/** How a call ended. */
export function outcomeOf({ statusCode = 0, errorType = "", cause = "" }: CallRecordJson): TemplateResult {
  if (errorType === "") return stateMark(true, String(statusCode));
  return stateMark(false, `${statusCode} ${visibleText(errorType)}${cause === "" ? "" : ` (${visibleText(cause)})`}`);
}
