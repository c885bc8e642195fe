import { type ActionName, type Command, commandFor } from "./commands.js";
import { html, nothing, type TemplateResult } from "./lit-html.js";
import { ApiError, createLoader } from "./loading.js";
import type { Methods } from "./methods.js";
import { visibleText } from "./text.js";
import { copyButton, type ViewContext } from "./view.js";

/** One field of a form. */
export interface Field {
  readonly name: string;
  readonly label: string;
  /** What it is called in the API, such as `application.display_name`: what the API says of it stands beside it. */
  readonly path?: string;
  /** A line of text by default. */
  readonly kind?: "line" | "secret" | "lines" | "choice" | "number" | "flag";
  readonly hint?: unknown;
  /** Values and labels of a `choice`. */
  readonly choices?: ReadonlyArray<readonly [value: string, label: string]>;
  /** Id of the list that suggests. */
  readonly list?: string;
  readonly isWide?: boolean;
}

/** What stands in a form, by the names of its fields; `yes` for what is ticked. */
export type Values = Readonly<Record<string, string>>;

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
  const sent = createLoader<TemplateResult>(update);
  let values: Values = {};
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
          <fieldset class="plain" ?disabled=${!session.mayPerform} aria-describedby="${id}-reason">
            <div class="fields">
              ${fields.map((field) => fieldView(field, { id, value: values[field.name] ?? "", change, problem: field === wrong ? sent.problem : undefined }))}
            </div>
            <p class="actions">
              <button type="submit" class=${sure === undefined ? "main" : "danger"} ?disabled=${sent.isBusy}>${button}</button>
              <span role="status">${sent.isBusy ? "Working…" : nothing}</span>
            </p>
          </fieldset>
          <p class="hint" id="${id}-reason">
            ${session.mayPerform ? nothing : "This token is read-only: changing anything is for operators."}
          </p>
          <div role="alert" id="${id}-problem" tabindex="-1">
            ${general === undefined ? nothing : html`<p class="notice bad">${visibleText(general)}</p>`}
          </div>
        </form>
        ${result} ${commandView(id, button, command())}`;
    },
  };
}

/** The field that the API names, or that a part of is named: `oauth_client.origin_parameters.subdomain`. */
function fieldOf(fields: readonly Field[], path: string): Field | undefined {
  const matches = (own: string) => path === own || path.startsWith(`${own}.`);
  return fields.find((field) => field.path === path) ?? fields.find(({ path: own, name }) => matches(own ?? name));
}

interface FieldState {
  /** Of the form. */
  readonly id: string;
  readonly value: string;
  readonly problem: string | undefined;
  readonly change: (name: string, value: string) => void;
}

type Input = HTMLInputElement | HTMLSelectElement | HTMLTextAreaElement;

function fieldView(field: Field, state: FieldState): TemplateResult {
  const { kind = "line", name, label, hint, isWide } = field;
  const id = `${state.id}-${name}`;
  const notes = html`${hint === undefined ? nothing : html`<span class="hint" id="${id}-hint">${hint}</span>`}
    <span class="problem" id="${id}-wrong">${state.problem === undefined ? nothing : visibleText(state.problem)}</span>`;
  if (kind === "flag") return tickView(field, id, state, notes);
  return html`<p class=${isWide || kind === "lines" ? "wide" : ""}>
    <label for=${id}>${label}</label>
    ${kind === "choice" ? choiceView(field, id, state) : kind === "lines" ? linesView(field, id, state) : lineView(field, id, state)}
    ${notes}
  </p>`;
}

const onInput =
  ({ name }: Field, { change }: FieldState) =>
  (event: Event) =>
    change(name, (event.currentTarget as Input).value);

function lineView(field: Field, id: string, state: FieldState): TemplateResult {
  const isSecret = field.kind === "secret";
  // Browsers offer their user's own passwords where they are told "off".
  const completion = isSecret ? "new-password" : "off";
  const mode = field.kind === "number" ? "numeric" : nothing;
  return html`<input id=${id} type=${isSecret ? "password" : "text"} inputmode=${mode} list=${field.list ?? nothing} .value=${state.value}
    @input=${onInput(field, state)} autocomplete=${completion} spellcheck="false" aria-invalid=${state.problem !== undefined}
    aria-describedby=${notesOf(field, id)} />`;
}

function linesView(field: Field, id: string, state: FieldState): TemplateResult {
  return html`<textarea id=${id} rows="3" .value=${state.value} @input=${onInput(field, state)} spellcheck="false"
    aria-invalid=${state.problem !== undefined} aria-describedby=${notesOf(field, id)}></textarea>`;
}

function choiceView(field: Field, id: string, state: FieldState): TemplateResult {
  return html`<select id=${id} @change=${onInput(field, state)} aria-invalid=${state.problem !== undefined}
    aria-describedby=${notesOf(field, id)}>
    ${(field.choices ?? []).map(([value, label]) => html`<option value=${value} .selected=${value === state.value}>${label}</option>`)}
  </select>`;
}

function tickView(field: Field, id: string, { value, problem, change }: FieldState, notes: TemplateResult) {
  const onTick = (event: Event) => change(field.name, (event.currentTarget as HTMLInputElement).checked ? "yes" : "");
  return html`<p class="wide">
    <input id=${id} type="checkbox" .checked=${value === "yes"} @change=${onTick} aria-invalid=${problem !== undefined}
      aria-describedby=${notesOf(field, id)} />
    <label for=${id} class="choice">${field.label}</label> ${notes}
  </p>`;
}

function notesOf({ hint }: Field, id: string): string {
  return hint === undefined ? `${id}-wrong` : `${id}-hint ${id}-wrong`;
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

/** What stands in a search form that is sent: the view shows it, in the place of the browser. */
export function searched(event: SubmitEvent): URLSearchParams {
  event.preventDefault();
  const form = new FormData(event.currentTarget as HTMLFormElement);
  return new URLSearchParams([...form].map(([name, value]) => [name, String(value)]));
}

/** Text of one entry a line, and back. */
export const lines = {
  read: (text = ""): string[] => text.split("\n").flatMap((line) => line.trim() || []),
  write: (entries: readonly string[] = []): string => entries.join("\n"),
} as const;

/** Reads `name=value`, one a line. Throws ApiError. */
export function pairsFrom(text: string | undefined, path: string): Record<string, string> {
  const pairs = lines.read(text).map((line) => line.split(/=(.*)/s, 2));
  if (pairs.every(([name, value]) => name !== "" && value !== undefined)) return Object.fromEntries(pairs);
  throw new ApiError("invalid_argument", "Each line must be name=value, such as subdomain=acme.", path);
}

/** Reads a whole number; empty is 0. Throws ApiError. */
export function numberFrom(text: string | undefined, path: string): number {
  const count = Number(text?.trim() || "0");
  if (Number.isInteger(count) && count >= -(2 ** 31) && count < 2 ** 31) return count;
  throw new ApiError("invalid_argument", `${path} must be a whole number.`, path);
}
