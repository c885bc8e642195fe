import type { ExplainCallResponseJson } from "../../gen/relay/admin/v1/call_pb.js";
import type { ProviderJson } from "../../gen/relay/admin/v1/provider_pb.js";
import type { CallRequestJson, ResultRowJson } from "../../gen/relay/v1/relay_pb.js";
import { type Directory, documentationLink } from "./directory.js";
import { explanationView } from "./explanation-view.js";
import { createFieldViews, type Field } from "./field.js";
import { html, nothing, type TemplateResult } from "./lit-html.js";
import { createLoader } from "./loading.js";
import { type CallForm, EMPTY_FORM, readCall, type Snippet, snippetsFor } from "./snippets.js";
import { countText, visibleLines, visibleText } from "./text.js";
import { busyNotice, copyButton, problemNotice, stateMark, type View, type ViewContext } from "./view.js";

/** Result of the last press of a button. */
interface Tried {
  /** Without the private key, so that no secret is kept. */
  readonly call: CallRequestJson;
  readonly explanation: ExplainCallResponseJson;
  /** Undefined when the call was only explained. */
  readonly row: ResultRowJson | undefined;
}

/** A form for one call: shows what would be sent, and the answer. */
export function createTryView(context: ViewContext): View {
  const { directory, session, update } = context;
  const tried = createLoader<Tried>(update);
  let form: CallForm = EMPTY_FORM;
  let snippet = "curl";

  const views = createFieldViews("try", update, (name, value) => {
    form = { ...form, [name]: value };
    update();
  });
  const fieldOf = (field: CallField) =>
    views.render(field, form[field.name], tried.field === field.name ? tried.problem : undefined);
  /** Whether a field of the form cannot be read, so that nothing was asked. */
  const isWrong = () => Object.hasOwn(EMPTY_FORM, tried.field ?? "");

  async function show(ask: () => Promise<Tried>): Promise<void> {
    await tried.load(ask);
    const result = tried.value?.row === undefined ? "explanation" : "row";
    document.getElementById(isWrong() ? `try-${tried.field}` : result)?.focus();
  }

  /** Enter explains the call, since explaining has no side effects. */
  function callForm(): TemplateResult {
    const { mayPerform } = session;
    const submit = (event: SubmitEvent) => {
      event.preventDefault();
      void show(() => explain(context, readCall(form)));
    };
    return html`<form class="call" @submit=${submit}>
      <div class="fields">${callFields(form, () => form.publicKey, directory).map(fieldOf)}</div>
      <details ?open=${isWrong() || form.payload !== "" || form.headers !== ""}>
        <summary>Payload, headers, private key</summary>
        ${MORE_FIELDS.map(fieldOf)}
      </details>
      <p class="actions">
        <button type="submit" class="main" ?disabled=${tried.isBusy}>Explain</button>
        <button type="button" ?disabled=${tried.isBusy || !mayPerform} @click=${() => show(() => perform(context, readCall(form)))}>Perform the call</button>
        ${mayPerform ? nothing : html`<span class="hint">This token is read-only: only operators can perform calls.</span>`}
      </p>
    </form>`;
  }

  function results(): TemplateResult | typeof nothing {
    const { value } = tried;
    if (value === undefined) return nothing;
    const { call, explanation, row } = value;
    const lacksProof = explanation.caller?.allowed !== true && explanation.caller?.rule === "proof-missing";
    return html`${row === undefined ? nothing : rowView(row)} ${explanationView(explanation, row !== undefined, call.userId ?? "")}
      ${lacksProof && session.mayPerform ? provenView(() => void show(() => performProven(context, value)), tried.isBusy) : nothing}`;
  }

  function snippets(): TemplateResult | typeof nothing {
    if (tried.value === undefined) return nothing;
    const choose = (name: string) => {
      snippet = name;
      update();
    };
    const isProven = ["proof-missing", "call-token"].includes(tried.value.explanation.caller?.rule ?? "");
    const proven = isProven ? { ...form, privateKey: "needed" } : form;
    try {
      return snippetsView(snippetsFor(proven, session.relayUrl), snippet, choose);
    } catch {
      // What is wrong is shown when a button is pressed.
      return nothing;
    }
  }

  return {
    title: "Try a call",
    enter(parameters) {
      const given = Object.keys(EMPTY_FORM).filter((field) => field !== "privateKey" && parameters.has(field));
      if (given.length === 0) return;
      // A different call: discard the state of the previous one.
      tried.clear();
      form = { ...EMPTY_FORM, ...Object.fromEntries(given.map((field) => [field, parameters.get(field) ?? ""])) };
    },
    leave(isStaying) {
      // Its own link in the navigation leaves the call as it is.
      if (!isStaying) form = { ...form, privateKey: "" };
    },
    render: () => html`<h1 tabindex="-1">Try a call</h1>
      <p class="hint">
        Explain shows what would be sent, or what would refuse the call, without sending anything. Perform sends the call to
        the provider for the user.
      </p>
      ${callForm()}
      ${isWrong() ? nothing : problemNotice(tried)} ${busyNotice(tried)} ${results()} ${snippets()}`,
  };
}

async function explain({ api }: ViewContext, call: CallRequestJson): Promise<Tried> {
  const explanation = await api.call("CallService/ExplainCall", { call });
  return { call: { ...call, privateKey: "" }, explanation, row: undefined };
}

/** Explains the call first, so that the request is shown beside the answer. */
async function perform(context: ViewContext, call: CallRequestJson): Promise<Tried> {
  const explained = await explain(context, call);
  const { row } = await context.api.call("CallService/PerformCall", { call });
  return { ...explained, row };
}

/** Long enough for one call. The relay accepts a token for a minute longer, to allow for clock skew. */
const PROOF_SECONDS = 60;

/** Performs the call with a call token, which an operator may create for any user; creating it is audited. */
async function performProven(context: ViewContext, { call, explanation }: Tried): Promise<Tried> {
  const { publicKey = "", userId = "", providerName = "" } = call;
  const lifetimeSeconds = Math.min(PROOF_SECONDS, explanation.application?.maxCallTokenSeconds || PROOF_SECONDS);
  const request = { publicKey, userId, providerNames: [providerName], lifetimeSeconds };
  const { callToken = "" } = await context.api.call("ApplicationService/CreateCallToken", request);
  return perform(context, { ...call, privateKey: callToken });
}

function provenView(onPress: () => void, isBusy: boolean): TemplateResult {
  return html`<p class="actions">
    <button type="button" ?disabled=${isBusy} @click=${onPress}>Perform it with a call token for this user</button>
    <span class="hint">The token is only for this user at this provider and is accepted for two minutes at most. Creating it is recorded in the audit trail.</span>
  </p>`;
}

/** Limit for displaying an answer, in characters: more would be slow to lay out, and nobody reads it. */
const MAX_SHOWN = 50_000;

/** The result row. */
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

function dataView(row: ResultRowJson): TemplateResult | typeof nothing {
  const { data, dataEncoding = "", dataRounded = false, possiblyTruncated = false } = row;
  if (data === undefined) return nothing;
  const text = typeof data === "string" ? data : JSON.stringify(data, undefined, 2);
  const shown = visibleLines(text.slice(0, MAX_SHOWN));
  return html`<pre tabindex="0" role="region" aria-label="Answer from the provider">${shown}</pre>
    ${possiblyTruncated ? html`<p class="hint">Its end may be missing: the provider did not state its length.</p>` : nothing}
    ${dataRounded ? html`<p class="hint">Numbers with more digits are rounded here, but not by the JSON route.</p>` : nothing}
    ${dataEncoding === "" ? nothing : html`<p class="hint">Encoding: ${visibleText(dataEncoding)}.</p>`}
    ${text.length > MAX_SHOWN ? html`<p class="hint">Only the first ${MAX_SHOWN} of ${text.length} characters are shown.</p>` : nothing}`;
}

function headersView({ headers = {} }: ResultRowJson): TemplateResult | typeof nothing {
  const fields = Object.entries(headers);
  if (fields.length === 0) return nothing;
  const text = fields.map(([name, value]) => visibleText(`${name}: ${value}`)).join("\n");
  return html`<details>
    <summary>${countText(fields.length, "header field")}</summary>
    <pre tabindex="0" role="region" aria-label="Header fields of the answer">${text}</pre>
  </details>`;
}

const METHODS = [
  ...["GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS"],
  ...["FORM", "MULTIFORM-POST", "MULTIFORM-PUT", "MULTIFORM-PATCH", "MULTIPART-FORM", "GETFILE"],
];

/** A field of the form. */
type CallField = Field & { readonly name: keyof CallForm };

function callFields(
  { method, providerName }: CallForm,
  publicKey: () => string,
  directory: Directory,
): readonly CallField[] {
  const { findApplications: find, applicationName: labelOf, findProviders, findUsers, providerOf } = directory;
  // The chosen method may be missing from the list when it comes from a call record.
  const choices = [...new Set([...METHODS, method])].map((each) => [each, each] as const);
  return [
    { name: "publicKey", label: "Application", find, labelOf },
    { name: "userId", label: "User id", find: (text) => findUsers(publicKey(), text) },
    { name: "providerName", label: "Provider", find: findProviders },
    { name: "method", label: "Method", kind: "choice", choices },
    urlField(providerOf(providerName)),
  ];
}

const MORE_FIELDS: readonly CallField[] = [
  { name: "payload", label: "Payload: a JSON object", kind: "lines" },
  { name: "headers", label: "Headers, one 'name: value' per line", kind: "lines" },
  { name: "privateKey", label: "The application's private key, if it requires one", kind: "secret" },
];

/** The hint shows the provider's API origins and documentation; no hint for an unknown provider. */
function urlField(provider: ProviderJson | undefined): CallField {
  const origins = visibleText((provider?.apiOrigins ?? []).join(" or "));
  const documentation = provider?.documentationUri ? html`. ${documentationLink(provider)}` : nothing;
  const hint = provider && { hint: html`On ${origins}${documentation}` };
  return { name: "url", label: "URL", isWide: true, ...hint };
}

/** Shows one of the snippets with a copy button. @param onChoose called with the name of the snippet to show. */
function snippetsView(snippets: readonly Snippet[], chosen: string, onChoose: (name: string) => void): TemplateResult {
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
