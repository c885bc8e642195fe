import { type KnownNames, originsHint, suggestionLists } from "./known-names.js";
import { html, nothing, type TemplateResult } from "./lit-html.js";
import type { CallForm } from "./tried-call.js";

/** What the form shows, and whom it tells. */
export interface CallFormOptions {
  readonly form: CallForm;
  readonly wrong: { readonly field: keyof CallForm; readonly problem: string } | undefined;
  /** Suggestions; undefined while they are on their way. */
  readonly names: KnownNames | undefined;
  readonly mayPerform: boolean;
  readonly isBusy: boolean;
  readonly change: (field: keyof CallForm, value: string) => void;
  readonly attempt: (isPerformed: boolean) => unknown;
}

const METHODS = [
  ...["GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS"],
  ...["FORM", "MULTIFORM-POST", "MULTIFORM-PUT", "MULTIFORM-PATCH", "MULTIPART-FORM", "GETFILE"],
];

/** The fields of one call. Enter explains it: that does nothing to anybody. */
export function callForm(options: CallFormOptions): TemplateResult {
  const { names, mayPerform, isBusy, attempt, form } = options;
  const submit = (event: SubmitEvent) => {
    event.preventDefault();
    attempt(false);
  };
  return html`<form class="call" @submit=${submit}>
    <div class="fields">
      ${input(options, "publicKey", "Application's public key", { list: "known-applications" })}
      ${input(options, "userId", "User id")} ${input(options, "providerName", "Provider", { list: "known-providers" })}
      ${methodField(options)} ${input(options, "url", "URL", { isWide: true, hint: originsHint(names, form.providerName) })}
    </div>
    <details ?open=${options.wrong !== undefined || form.payload !== "" || form.headers !== ""}>
      <summary>Payload, headers, private key</summary>
      ${area(options, "payload", "Payload: a JSON object")} ${area(options, "headers", "Headers, 'name: value' a line")}
      ${input(options, "privateKey", "The application's private key, where it demands one", { type: "password" })}
    </details>
    ${names === undefined ? nothing : suggestionLists(names)}
    <p class="actions">
      <button type="submit" class="main" ?disabled=${isBusy}>Explain</button>
      <button type="button" ?disabled=${isBusy || !mayPerform} @click=${() => attempt(true)}>Perform the call</button>
      ${mayPerform ? nothing : html`<span class="hint">Performing is for operators; this token is read-only.</span>`}
    </p>
  </form>`;
}

function input(
  { form, change }: CallFormOptions,
  field: keyof CallForm,
  label: string,
  { list, type = "text", hint, isWide }: { list?: string; type?: string; hint?: unknown; isWide?: boolean } = {},
): TemplateResult {
  const onInput = (event: InputEvent) => change(field, (event.currentTarget as HTMLInputElement).value);
  return html`<p class=${isWide ? "wide" : ""}>
    <label for=${field}>${label}</label>
    <input id=${field} type=${type} list=${list ?? nothing} .value=${form[field]} @input=${onInput} autocomplete="off"
      spellcheck="false" aria-describedby="${field}-hint" />
    <span class="hint" id="${field}-hint">${hint ?? nothing}</span>
  </p>`;
}

function area({ form, wrong, change }: CallFormOptions, field: "payload" | "headers", label: string): TemplateResult {
  const onInput = (event: InputEvent) => change(field, (event.currentTarget as HTMLTextAreaElement).value);
  const isWrong = wrong?.field === field;
  return html`<p>
    <label for=${field}>${label}</label>
    <textarea id=${field} rows="4" .value=${form[field]} @input=${onInput} spellcheck="false"
      aria-invalid=${isWrong} aria-describedby="${field}-problem"></textarea>
    <span class="problem" id="${field}-problem">${isWrong ? wrong.problem : nothing}</span>
  </p>`;
}

function methodField({ form, change }: CallFormOptions): TemplateResult {
  const onChange = (event: Event) => change("method", (event.currentTarget as HTMLSelectElement).value);
  return html`<p>
    <label for="method">Method</label>
    <select id="method" @change=${onChange}>
      ${METHODS.map((method) => html`<option value=${method} ?selected=${method === form.method}>${method}</option>`)}
    </select>
  </p>`;
}
