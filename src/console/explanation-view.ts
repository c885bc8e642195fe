import type {
  ExplainCallResponse_RefreshJson,
  ExplainCallResponseJson,
  ExplainedRequestJson,
  RefusalJson,
  RuleVerdictJson,
} from "../../gen/relay/admin/v1/call_pb.js";
import { stateOf } from "./connection-state.js";
import { html, nothing, type TemplateResult } from "./lit-html.js";
import { remedyView } from "./remedy.js";
import { countText, visibleText } from "./text.js";
import { messageText, moment, stateMark, step } from "./view.js";

/**
 * Shows each decision about a call, and the request as it would be sent.
 *
 * @param isSent the call was performed afterwards.
 * @param userId the call's user.
 */
export function explanationView(told: ExplainCallResponseJson, isSent: boolean, userId: string): TemplateResult {
  const { application, caller, providerName, egress, applicationRules, callTokenRules } = told;
  const { connection, refresh, request, refusal } = told;
  return html`<section aria-labelledby="explanation">
    <h2 id="explanation" tabindex="-1">${titleOf(told, isSent)}</h2>
    ${refusal === undefined ? nothing : refusalView(refusal, told, userId)}
    <dl class="steps">
      ${application && step("Application", html`<bdi>${visibleText(application.displayName ?? "")}</bdi>`)}
      ${caller && step("Caller", verdictView(caller))}
      ${providerName && step("Provider", visibleText(providerName))}
      ${egress && step("URL", verdictView(egress))}
      ${applicationRules && step("Call rules", verdictView(applicationRules))}
      ${callTokenRules && step("Call token", verdictView(callTokenRules))}
      ${connection && step("Connection", html`${stateOf(connection)}; token expires: ${moment(connection.expireTime, "unknown")}`)}
      ${refresh && step("Token refresh", REFRESHES.get(refresh) ?? "")}
    </dl>
    ${request && requestView(request)}
  </section>`;
}

function titleOf({ refusal }: ExplainCallResponseJson, isSent: boolean): string {
  if (refusal !== undefined) return isSent ? "Why it was refused" : "This call would be refused";
  return isSent ? "This was sent" : "This would be sent";
}

const REFRESHES: ReadonlyMap<ExplainCallResponse_RefreshJson, string> = new Map([
  ["REFRESH_NONE", "None: the current token is sent"],
  ["REFRESH_BESIDE", "In parallel with the call: the current token is sent"],
  ["REFRESH_BEFORE", "Before the call: no valid token is stored, so a new one is obtained and sent"],
]);

function verdictView({ allowed = false, rule = "" }: RuleVerdictJson): TemplateResult {
  return stateMark(allowed, `${allowed ? "Allowed by" : "Refused by"} ${visibleText(rule)}`);
}

function refusalView(
  { errorType = "", statusCode = 0, message = "", advice = "" }: RefusalJson,
  { application, caller, providerName = "" }: ExplainCallResponseJson,
  userId: string,
): TemplateResult {
  const { publicKey = "" } = application ?? {};
  return html`<div class="notice bad">
    <p><strong>${visibleText(errorType)}</strong> (${statusCode})</p>
    <p>${visibleText(message)}</p>
    ${remedyView({ errorType, statusCode, rule: caller?.rule ?? "", publicKey, userId, providerName })}
    ${advice === "" ? nothing : html`<p>On the command line: ${visibleText(advice)}</p>`}
  </div>`;
}

function requestView({ method = "", url = "", headers = [], bodyBytes = 0, bodyStart = "" }: ExplainedRequestJson) {
  const body = bodyBytes === 0 ? "" : (textFromBase64(bodyStart) ?? "(binary)");
  return html`<pre tabindex="0" role="region" aria-label="Request to the provider">${messageText(`${method} ${url}`, headers, body)}</pre>
    <p class="hint">
      ${bodyBytes === 0 ? "No body." : `${countText(bodyBytes, "byte")} of body.`} Tokens are shown as <code>***</code>; this page
      never receives them.
    </p>`;
}

/** Undefined unless it is UTF-8; the last character may be incomplete. */
function textFromBase64(base64: string): string | undefined {
  const bytes = Uint8Array.from(atob(base64), (character) => character.charCodeAt(0));
  try {
    return new TextDecoder("utf-8", { fatal: true }).decode(bytes, { stream: true });
  } catch {
    // The caller shows "(binary)".
    return undefined;
  }
}
