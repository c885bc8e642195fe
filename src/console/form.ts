import { type ActionName, type Command, commandFor } from "./commands.js";
import { type Field, fieldOf, fieldView, type Values } from "./field.js";
import { html, nothing, type TemplateResult } from "./lit-html.js";
import { ApiError, createLoader } from "./loading.js";
import type { Methods } from "./methods.js";
import { createPicker, type Picker } from "./picker.js";
import { visibleText } from "./text.js";
import { copyButton, type ViewContext } from "./view.js";

/** What a form does. */
export interface FormOptions<Name extends ActionName> {
  /** Begins the ids of its elements. */
  readonly id: string;
  readonly method: Name;
  /** What its button says. */
  readonly button: string | (() => string);
  /** It takes something away that does not come back: this is to be ticked before anything is sent. */
  readonly sure?: string;
  /** After it nothing is left that it could be used for again: only its result is shown. */
  readonly isLast?: boolean;
  /** None by default. */
  readonly fields?: () => readonly Field[];
  /** Throws ApiError, which may name a field's path. */
  readonly requestFrom: (values: Values) => Methods[Name][0];
  /** Shows what came of it; what it holds is forgotten with `clear()`. */
  readonly done: (answer: Methods[Name][1], request: Methods[Name][0]) => TemplateResult;
}

/** A form that does one thing through the administration API, and shows the command that does the same. */
export interface Form {
  /** Whether it is done, and was the last of its kind. */
  readonly isOver: boolean;
  /** What stands in it. */
  readonly values: Values;
  /** Puts values in the fields. */
  fill(values: Values): void;
  /** Forgets everything that was typed or answered, also what is still on its way. */
  clear(): void;
  render(): TemplateResult;
}

/** An empty form. Fields of kind `secret` are emptied when they were sent. */
export function createForm<Name extends ActionName>(
  { api, session, update }: ViewContext,
  options: FormOptions<Name>,
): Form {
  /** Explaining changes nothing. */
  const isAllowed = session.mayPerform || options.method === "CallService/ExplainCall";
  const sent = createLoader<TemplateResult>(update);
  let values: Values = {};
  const pickers = new Map<string, Picker>();
  /** Grows with each `clear()`: what was sent before is of no concern after it. */
  let generation = 0;

  function fieldsNow(): readonly Field[] {
    const { fields, sure } = options;
    return [
      ...(fields?.() ?? []),
      ...(sure === undefined ? [] : [{ name: "sure", label: sure, kind: "flag" } as const]),
    ];
  }

  function change(name: string, value: string): void {
    values = { ...values, [name]: value };
    update();
  }

  /** Of a field in which something is searched for. */
  function pickerOf({ name, find }: Field): Picker | undefined {
    if (find === undefined) return undefined;
    const own = { id: `${options.id}-${name}`, find, onValue: (value: string) => change(name, value) };
    const picker = pickers.get(name) ?? createPicker(update, own);
    pickers.set(name, picker);
    return picker;
  }

  async function send(): Promise<TemplateResult> {
    if (options.sure !== undefined && values["sure"] !== "yes")
      throw new ApiError("invalid_argument", "Tick this to go on.", "sure");
    const request = options.requestFrom(values);
    const own = generation;
    const answer = await api.call(options.method, request);
    return own === generation ? options.done(answer, request) : html``;
  }

  async function submit(event: SubmitEvent): Promise<void> {
    event.preventDefault();
    if (sent.isBusy) return;
    const own = generation;
    await sent.load(send);
    if (own !== generation) return;
    if (sent.problem === undefined && sent.value !== undefined) forgetSecrets();
    const wrong = sent.field === undefined ? undefined : fieldOf(fieldsNow(), sent.field);
    const part = sent.problem === undefined ? "result" : (wrong?.name ?? "problem");
    // Once the change is shown.
    queueMicrotask(() => document.getElementById(`${options.id}-${part}`)?.focus());
  }

  function forgetSecrets(): void {
    const secrets = fieldsNow().filter(({ kind }) => kind === "secret");
    values = { ...values, ...Object.fromEntries(secrets.map(({ name }) => [name, ""])), sure: "" };
    update();
  }

  function command(): Command | undefined {
    try {
      return commandFor(options.method, options.requestFrom(values));
    } catch {
      // What is wrong is said when the form is sent.
      return undefined;
    }
  }

  return {
    get isOver() {
      return options.isLast === true && sent.value !== undefined;
    },
    get values() {
      return values;
    },
    fill(given) {
      values = { ...values, ...given };
      update();
    },
    clear() {
      generation += 1;
      values = {};
      for (const picker of pickers.values()) picker.clear();
      sent.clear();
    },
    render() {
      const { id, sure, isLast } = options;
      const button = typeof options.button === "string" ? options.button : options.button();
      const result = html`<div id="${id}-result" class="result" role="status" tabindex="-1">
        ${sent.value !== undefined && sent.problem === undefined ? sent.value : nothing}
      </div>`;
      if (isLast && sent.value !== undefined) return result;
      const fields = fieldsNow();
      const wrong = sent.field === undefined ? undefined : fieldOf(fields, sent.field);
      const general = wrong === undefined ? sent.problem : undefined;
      return html`<form id=${id} class="call" novalidate aria-label=${button} @submit=${submit}>
          <fieldset class="plain" ?disabled=${!isAllowed} aria-describedby="${id}-reason">
            <div class="fields">
              ${fields.map((field) => fieldView(field, { id, value: values[field.name] ?? "", change, problem: field === wrong ? sent.problem : undefined, picker: pickerOf(field) }))}
            </div>
            <p class="actions">
              <button type="submit" class=${sure === undefined ? "main" : "danger"} ?disabled=${sent.isBusy}>${button}</button>
              <span role="status">${sent.isBusy ? "Working…" : nothing}</span>
            </p>
          </fieldset>
          <p class="hint" id="${id}-reason">
            ${isAllowed ? nothing : "This token is read-only: changing anything is for operators."}
          </p>
          <div role="alert" id="${id}-problem" tabindex="-1">
            ${general === undefined ? nothing : html`<p class="notice bad">${visibleText(general)}</p>`}
          </div>
        </form>
        ${result} ${commandView(id, button, command())}`;
    },
  };
}

function commandView(id: string, button: string, command: Command | undefined): TemplateResult {
  return html`<details class="command">
    <summary>The same as a command<span class="unseen">: ${button}</span></summary>
    ${
      command === undefined
        ? html`<p class="hint">It is shown once the form can be read.</p>`
        : html`<pre id="${id}-command" tabindex="0" role="region" aria-label="Command: ${button}">${command.text}</pre>
            ${command.input === undefined ? nothing : html`<p class="hint">${command.input}</p>`}
            <p>${copyButton(`Copy the command: ${button}`, command.text, `${id}-command`)}</p>`
    }
  </details>`;
}

/**
 * What is shown this once, with a button that copies it.
 *
 * @param where a sentence about where it belongs.
 */
export function secretView(id: string, label: string, secret: string, where: unknown): TemplateResult {
  return html`<div class="notice">
    <p>${label}, shown this once:</p>
    <pre id=${id} tabindex="0" role="region" aria-label=${label}>${secret}</pre>
    <p>${copyButton(`Copy: ${label}`, secret, id)}</p>
    <p class="hint">${where}</p>
  </div>`;
}

/** Says how it went. */
export function notice(text: unknown): TemplateResult {
  return html`<p class="notice">${text}</p>`;
}

/** Names of the values that differ from those of `base`, among them what it has not. Pure. */
export function changedNames(values: Values, base: Values): readonly string[] {
  return Object.keys(base).filter((name) => values[name] !== undefined && values[name] !== base[name]);
}

/**
 * The mask of an update that writes what was changed and nothing else: what others change meanwhile stays. Throws ApiError
 * when it would name nothing.
 *
 * @param others fields that are written besides.
 */
export function changeMask(values: Values, base: Values, others: readonly string[]): string {
  const names = [...changedNames(values, base), ...others];
  if (names.length > 0) return names.join();
  throw new ApiError("invalid_argument", "Nothing was changed.");
}
