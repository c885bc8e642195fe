import type { ExplainCallResponseJson } from "../../gen/relay/admin/v1/call_pb.js";
import type { CallRequestJson, ResultRowJson } from "../../gen/relay/v1/relay_pb.js";
import { callForm } from "./call-form.js";
import { explanationView } from "./explanation-view.js";
import { type KnownNames, loadKnownNames } from "./known-names.js";
import { html, nothing, type TemplateResult } from "./lit-html.js";
import { createLoader } from "./loading.js";
import { snippetsFor } from "./snippets.js";
import { snippetsView } from "./snippets-view.js";
import { type CallForm, EMPTY_FORM, readCall } from "./tried-call.js";
import { busyNotice, problemNotice, stateMark, type View, type ViewContext } from "./view.js";
import { visibleLines, visibleText } from "./visible-text.js";

/** What came of the last press of a button. */
interface Tried {
  readonly explanation: ExplainCallResponseJson;
  /** Undefined when the call was only explained, or would be refused. */
  readonly row: ResultRowJson | undefined;
}

/** A form for one call: what would be sent, and what comes back. */
export function createTryView(context: ViewContext): View {
  const { api, session, update } = context;
  const names = createLoader<KnownNames>(update);
  const tried = createLoader<Tried>(update);
  let form: CallForm = EMPTY_FORM;
  let wrong: { readonly field: keyof CallForm; readonly problem: string } | undefined;
  let snippet = "curl";

  function change(field: keyof CallForm, value: string): void {
    form = { ...form, [field]: value };
    update();
  }

  async function attempt(isPerformed: boolean): Promise<void> {
    const read = readCall(form);
    wrong = "problem" in read ? read : undefined;
    update();
    if ("problem" in read) return document.getElementById(read.field)?.focus();
    await tried.load(() => (isPerformed ? perform(context, read.call) : explain(context, read.call)));
    document.getElementById(isPerformed && tried.value?.row !== undefined ? "row" : "explanation")?.focus();
  }

  function results(): TemplateResult | typeof nothing {
    const { value } = tried;
    if (value === undefined) return nothing;
    return html`${value.row === undefined ? nothing : rowView(value.row)} ${explanationView(value.explanation, value.row !== undefined)}`;
  }

  function snippets(): TemplateResult | typeof nothing {
    const read = readCall(form);
    if ("problem" in read || tried.value === undefined) return nothing;
    const choose = (name: string) => {
      snippet = name;
      update();
    };
    return snippetsView(snippetsFor(form, read.call.call?.headers ?? {}, session.relayUrl), snippet, choose);
  }

  return {
    title: "Try a call",
    enter(parameters) {
      const given = Object.keys(EMPTY_FORM).filter((field) => field !== "privateKey" && parameters.has(field));
      form = { ...form, ...Object.fromEntries(given.map((field) => [field, parameters.get(field) ?? ""])) };
      void names.load(() => loadKnownNames(api));
    },
    leave() {
      form = { ...form, privateKey: "" };
    },
    render: () => html`<h1 tabindex="-1">Try a call</h1>
      <p class="hint">
        Explain says what would be sent, or what would refuse it, and sends nothing. Perform sends it to the provider, for
        the user.
      </p>
      ${callForm({ form, wrong, names: names.value, mayPerform: session.mayPerform, isBusy: tried.isBusy, change, attempt })}
      ${problemNotice(tried)} ${busyNotice(tried)} ${results()} ${snippets()}`,
  };
}

async function explain({ api }: ViewContext, call: CallRequestJson): Promise<Tried> {
  return { explanation: await api.call("CallService/ExplainCall", { call }), row: undefined };
}

/** Explained first, so that what was sent can be seen beside what came back. */
async function perform(context: ViewContext, call: CallRequestJson): Promise<Tried> {
  const { explanation } = await explain(context, call);
  const { row } = await context.api.call("CallService/PerformCall", { call });
  return { explanation, row };
}

/** More of an answer is laid out by no browser in a moment, and read by nobody. In characters. */
const MAX_SHOWN = 50_000;

/** The row that came back. */
function rowView(row: ResultRowJson): TemplateResult {
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
