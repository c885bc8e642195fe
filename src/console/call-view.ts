import type {
  CallCaptureJson,
  CallRecordJson,
  CapturedBodyJson,
  CapturedRequestJson,
  CapturedResponseJson,
} from "../../gen/relay/admin/v1/call_record_pb.js";
import { outcomeOf, targetOf } from "./call-tables.js";
import { applicationLink, type Directory } from "./directory.js";
import { liveCallFrom, msFrom } from "./frames.js";
import { html, nothing, type TemplateResult } from "./lit-html.js";
import { askUntil, createLoader, type Loading, undefinedIfMissing } from "./loading.js";
import { remedyView } from "./remedy.js";
import { addressOf, msText, visibleText } from "./text.js";
import { busyNotice, messageText, moment, problemNotice, step, term, type View, type ViewContext } from "./view.js";

/** Live calls appear before their record is written, which takes half a second, or two under load. */
const MAX_ASKS = 10;

/** The record of one call. Asks again for up to ten seconds if the record is not written yet. */
export function createCallView({ api, directory, update }: ViewContext): View {
  const found = createLoader<CallRecordJson | undefined>(update);
  /** It was asked for, and there is no record yet. */
  let isLate = false;
  let userId = "";

  return {
    title: "Call record",
    enter(parameters) {
      userId = parameters.get("userId") ?? "";
      const callId = parameters.get("callId") ?? "";
      const ask = () => api.call("CallRecordService/GetCallRecord", { callId }).catch(undefinedIfMissing);
      void found.load((isWanted) =>
        askUntil(MAX_ASKS, ask, (record) => {
          if (!isWanted()) return true;
          isLate = record === undefined;
          update();
          return !isLate;
        }),
      );
    },
    leave() {
      isLate = false;
      found.clear();
    },
    render: () => html`<h1 tabindex="-1">Call record</h1>
      <p><a href="#/live">Back to the live calls</a></p>
      ${problemNotice(found)} ${contentOf(found, { isLate, directory, userId })}`,
  };
}

function contentOf(
  found: Loading<CallRecordJson | undefined>,
  { isLate, directory, userId }: { isLate: boolean; directory: Directory; userId: string },
): TemplateResult | typeof nothing {
  if (found.value !== undefined) return recordView(found.value, directory, userId);
  if (found.problem !== undefined) return nothing;
  if (!isLate) return busyNotice(found);
  return html`<p role="status">${
    found.isBusy
      ? "This call is not recorded yet. Its record appears here as soon as it is."
      : "There is no record of this call: it was not recorded, was deleted to make room for newer ones, or its application was deleted."
  }</p>`;
}

/** Everything recorded about a call. */
function recordView(record: CallRecordJson, directory: Directory, askedUserId: string): TemplateResult {
  const { callId = "", publicKey = "", startTime, surface = "", providerName = "", rule = "", requestId = "" } = record;
  const userId = record.userId || askedUserId;
  const { errorType = "", statusCode = 0, origin = "", path = "", method = "" } = record;
  return html`<section aria-label="Record">
    ${errorType === "" ? nothing : html`<div class="notice bad">${remedyView({ errorType, statusCode, rule, publicKey, userId, providerName })}</div>`}
    ${publicKey === "" ? nothing : html`<p><a href=${addressOf("try", { publicKey, userId, providerName, method, url: origin + path })}>Try it again, without its query, headers and body</a></p>`}
    <dl class="steps">
      ${step("Call", targetOf(record))} ${step("Outcome", outcomeOf(record))}
      ${step("Began", html`${moment(startTime, "")} <span class="hint">${startTime}</span>`)}
      ${step("Provider", visibleText(providerName) || "no such provider")}
      ${step("Application", publicKey === "" ? "deleted" : applicationLink(directory, publicKey))} ${userOf(record)} ${step(term("Surface", "How the call reached the relay: its JSON route, Connect, gRPC, a stream, the pass-through, MCP or the administration API."), visibleText(surface))}
      ${rule === "" ? nothing : step(term("Decided by", "What allowed the URL of the call or refused the call: an origin of the provider or the name of a rule."), visibleText(rule))} ${step("Call id", idOf(callId))}
      ${requestId === "" ? nothing : step("Request id", idOf(requestId))}
    </dl>
    <h2>Where its time went</h2>
    <dl class="steps">${timesOf(record)}</dl>
    <h2>What it carried</h2>
    <dl class="steps">
      ${step("Sent to the provider", bytesText(record.requestBytes))}
      ${step("Returned to the caller", bytesText(record.responseBytes))}
    </dl>
    ${captureOf(record)}
  </section>`;
}

/** Records do not store the user: it is looked up through the connection, and missing once that is deleted. */
function userOf({ publicKey = "", userId = "", providerName = "" }: CallRecordJson): TemplateResult | typeof nothing {
  if (userId === "") return nothing;
  const address = addressOf("connection", { publicKey, userId, providerName });
  return step("User", html`<bdi class="id">${visibleText(userId)}</bdi> <a href=${address}>Connection</a>`);
}

/** A capture is deleted before its record, and only operators can see it. */
function captureOf({ captured = false, capture, captureProblem }: CallRecordJson): TemplateResult | typeof nothing {
  if (capture !== undefined) return captureView(capture);
  if (captureProblem !== undefined) return html`<p>${captureProblem}</p>`;
  if (!captured) return nothing;
  return html`<p>Headers and bodies were captured. They are kept for a day and shown only to operators.</p>`;
}

/** Omits the waits that the call never reached. */
function timesOf(record: CallRecordJson): TemplateResult {
  const { totalMs, relayMs } = liveCallFrom(record);
  const wait = (name: string, duration: string | undefined) =>
    duration === undefined ? nothing : step(name, msText(msFrom(duration)));
  return html`${step("Whole call", msText(totalMs))} ${step("Relay", msText(relayMs))}
    ${wait("Wait for a token", record.tokenDuration)} ${wait("Wait in the queue", record.queueDuration)}
    ${wait("Provider", record.providerDuration)}`;
}

function idOf(id: string): TemplateResult | undefined {
  return id === "" ? undefined : html`<span class="id">${visibleText(id)}</span>`;
}

/** @param count ProtoJSON of an int64; undefined for 0. */
function bytesText(count: string | undefined): string {
  return `${Number(count ?? 0).toLocaleString("en")} bytes`;
}

/** Headers and bodies of one call. The relay has already redacted the credentials. */
function captureView({ request = {}, response, message = "" }: CallCaptureJson): TemplateResult {
  const { method = "", url = "", sent = false } = request;
  return html`<section aria-label="Capture">
    <h2>${sent ? "What was sent" : "Requested, but not sent"}</h2>
    ${messageView("Request to the provider", `${method} ${url}`, request)}
    <h2>What came back</h2>
    ${message === "" ? nothing : html`<p>${visibleText(message)}</p>`}
    ${response === undefined ? html`<p>The provider did not answer.</p>` : messageView("Answer from the provider", `Status ${response.statusCode ?? 0}`, response)}
    <p class="hint">
      Credentials are shown as <code>[masked]</code>, and the token inside other text as <code>[redacted]</code>. A
      capture is kept for a day.
    </p>
  </section>`;
}

function messageView(
  label: string,
  first: string,
  message: CapturedRequestJson | CapturedResponseJson,
): TemplateResult {
  const { headers = [], body } = message;
  return html`<pre tabindex="0" role="region" aria-label=${label}>${messageText(first, headers, body?.text ?? "")}</pre>
    <p class="hint">${bodyHint(body)}</p>`;
}

function bodyHint(body: CapturedBodyJson | undefined): string {
  if (body === undefined) return "No body.";
  const { sizeBytes = "0", text = "", truncated = false } = body;
  const size = `${Number(sizeBytes).toLocaleString("en")} bytes of body`;
  if (text === "" && sizeBytes !== "0") return `${size}, not text.`;
  return truncated ? `${size}; only the beginning is shown.` : `${size}.`;
}
