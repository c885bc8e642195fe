import type { CallRecordJson } from "../../gen/relay/admin/v1/call_record_pb.js";
import { outcomeOf, targetOf } from "./call-cells.js";
import { captureView } from "./capture-view.js";
import { msText } from "./figures.js";
import { html, nothing, type TemplateResult } from "./lit-html.js";
import { liveCallFrom } from "./live-call.js";
import { moment } from "./moments.js";
import { step } from "./step.js";
import { visibleText } from "./visible-text.js";

/** Everything that is written down of a call. */
export function recordView(record: CallRecordJson): TemplateResult {
  const { callId = "", publicKey = "", startTime, surface = "", providerName = "", rule = "" } = record;
  return html`<section aria-label="Record">
    <dl class="steps">
      ${step("Call", targetOf(record))} ${step("Outcome", outcomeOf(record))}
      ${step("Began", html`${moment(startTime, "")} <span class="hint">${startTime}</span>`)}
      ${step("Provider", visibleText(providerName) || "none of this name")}
      ${step("Application", idOf(publicKey) ?? "deleted since")} ${step("Came in by", visibleText(surface))}
      ${rule === "" ? nothing : step("Decided by", visibleText(rule))} ${step("Call id", idOf(callId))}
    </dl>
    <h2>Where its time went</h2>
    <dl class="steps">${timesOf(record)}</dl>
    <h2>What it carried</h2>
    <dl class="steps">
      ${step("Sent to the provider", bytesText(record.requestBytes))}
      ${step("Handed to the caller", bytesText(record.responseBytes))}
    </dl>
    ${captureOf(record)}
  </section>`;
}

/** A capture ends before its record, and is for operators alone. */
function captureOf({ captured = false, capture }: CallRecordJson): TemplateResult | typeof nothing {
  if (capture !== undefined) return captureView(capture);
  if (!captured) return nothing;
  return html`<p>Headers and bodies were captured. They are kept for a day, and shown to tokens with the role operator.</p>`;
}

/** What a call came not so far as to wait for is left out. */
function timesOf(record: CallRecordJson): TemplateResult {
  const { totalMs, relayMs } = liveCallFrom(record);
  const wait = (name: string, duration: string | undefined) =>
    duration === undefined ? nothing : step(name, msText(Number.parseFloat(duration) * 1000));
  return html`${step("Whole call", msText(totalMs))} ${step("Relay", msText(relayMs))}
    ${wait("Wait for a token", record.tokenDuration)} ${wait("Wait for a turn", record.queueDuration)}
    ${wait("Provider", record.providerDuration)}`;
}

function idOf(id: string): TemplateResult | undefined {
  return id === "" ? undefined : html`<span class="id">${visibleText(id)}</span>`;
}

/** @param count ProtoJSON of an int64; left out when it is 0. */
function bytesText(count: string | undefined): string {
  return `${Number(count ?? 0).toLocaleString("en")} bytes`;
}
