import type { CallRecordJson } from "../../gen/relay/admin/v1/call_record_pb.js";
import type { Api } from "./api.js";
import { ApiError } from "./api-error.js";
import { html, nothing, type TemplateResult } from "./lit-html.js";
import { createLoader, type Loader } from "./loading.js";
import { busyNotice, problemNotice } from "./notices.js";
import { recordView } from "./record-view.js";
import type { View, ViewContext } from "./view.js";

/** A call is seen before its record is written, which takes half a second, and two when much is to write. */
const ASK_AGAIN_MS = 1000;
const MAX_ASKS = 10;

/** The record of one call, also of one that was seen as it ended and is written only now. */
export function createCallView({ api, update }: ViewContext): View {
  let found = createLoader<CallRecordJson | undefined>(update);
  let asks = 0;
  let timer: ReturnType<typeof setTimeout> | undefined;

  async function ask(callId: string, own: typeof found): Promise<void> {
    asks += 1;
    await own.load(() => recordOf(api, callId));
    if (own !== found || own.value !== undefined || own.problem !== undefined || asks >= MAX_ASKS) return;
    timer = setTimeout(() => void ask(callId, own), ASK_AGAIN_MS);
  }

  function stop(): void {
    clearTimeout(timer);
    found = createLoader<CallRecordJson | undefined>(update);
    asks = 0;
  }

  return {
    title: "Call record",
    enter(parameters) {
      stop();
      void ask(parameters.get("callId") ?? "", found);
    },
    leave: stop,
    render: () => html`<h1 tabindex="-1">Call record</h1>
      <p><a href="#/live">Back to the live calls</a></p>
      ${problemNotice(found)} ${contentOf(found, asks)}`,
  };
}

/** Undefined where there is none, or none yet. Rejects with ApiError. */
async function recordOf(api: Api, callId: string): Promise<CallRecordJson | undefined> {
  try {
    return await api.call("CallRecordService/GetCallRecord", { callId });
  } catch (error) {
    if (error instanceof ApiError && error.code === "not_found") return undefined;
    throw error;
  }
}

function contentOf(found: Loader<CallRecordJson | undefined>, asks: number): TemplateResult | typeof nothing {
  if (found.value !== undefined) return recordView(found.value);
  if (found.problem !== undefined) return nothing;
  if (asks <= 1 && found.isBusy) return busyNotice(found);
  return html`<p role="status">${
    asks < MAX_ASKS || found.isBusy
      ? "This call is not written down yet. Its record is shown here as soon as it is."
      : "There is no record of this call: it was left out, has made room for newer ones, or its application was deleted."
  }</p>`;
}
