import { type ActionName, type Command, commandFor } from "./commands.js";
import { createFieldViews, type Field, fieldOf, type Values } from "./field.js";
import { html, nothing, type TemplateResult } from "./lit-html.js";
import { ApiError, createLoader } from "./loading.js";
import type { Methods } from "./methods.js";
import { visibleText } from "./text.js";
import { copyButton, type ViewContext } from "./view.js";

/** Options of {@link createForm}. */
export interface FormOptions<Name extends ActionName> {
  /** Prefix of the ids of its elements. */
  readonly id: string;
  readonly method: Name;
  /** Label of its button. */
  readonly button: string | (() => string);
  /** Label of a confirmation checkbox for an action that cannot be undone: the form is sent only when it is ticked. */
  readonly sure?: string;
  /** The form can be used only once (a deletion): afterwards only its result is shown. */
  readonly isLast?: boolean;
  /** Default: no fields. */
  readonly fields?: () => readonly Field[];
  /**
   * For a form that changes what is stored: its values, shown where nothing else was typed. Its `etag`, if any, is that of
   * the values which the typed ones are based on. Default: nothing; what was typed then stays after it was sent.
   */
  readonly stored?: () => Values;
  /** Throws ApiError, which may name a field's path. @param stored what `values` are based on. */
  readonly requestFrom: (values: Values, stored: Values) => Methods[Name][0];
  /** Renders the result, which `clear()` discards. */
  readonly done: (answer: Methods[Name][1], request: Methods[Name][0]) => TemplateResult;
}

/** A form for one method of the administration API; it also shows the equivalent `relay` command. */
export interface Form {
  /** Whether it was submitted successfully and can be used only once. */
  readonly isOver: boolean;
  /** Current values of its fields. */
  readonly values: Values;
  /** Puts values in the fields. */
  fill(values: Values): void;
  /** Discards everything typed and answered, including an answer that has not arrived yet. */
  clear(): void;
  render(): TemplateResult;
}

/** Creates a form. Fields of kind `secret` are cleared after a successful submission. */
export function createForm<Name extends ActionName>(
  { api, session, update }: ViewContext,
  options: FormOptions<Name>,
): Form {
  /** Read-only sessions may use only the form that explains a call, since it changes nothing. */
  const isAllowed = session.mayPerform || options.method === "CallService/ExplainCall";
  const sent = createLoader<TemplateResult>(update);
  let typed: Values = {};
  /** What was stored when the user began to type, or as the last save left it. */
  let base: Values | undefined;
  const views = createFieldViews(options.id, update, change);

  function fieldsNow(): readonly Field[] {
    const { fields, sure } = options;
    return [
      ...(fields?.() ?? []),
      ...(sure === undefined ? [] : [{ name: "sure", label: sure, kind: "flag" } as const]),
    ];
  }

  /** Keeps what the typed values are based on, with the etag of then if somebody has changed any of it since. */
  function storedNow(): Values {
    const now = options.stored?.() ?? {};
    const before = base ?? now;
    return Object.keys(before).some((name) => name !== "etag" && before[name] !== now[name]) ? before : now;
  }

  const valuesNow = (stored = storedNow()): Values => ({ ...stored, ...typed });

  function requestNow(): Methods[Name][0] {
    const stored = storedNow();
    return options.requestFrom(valuesNow(stored), stored);
  }

  function change(name: string, value: string): void {
    base ??= options.stored?.();
    typed = { ...typed, [name]: value };
    update();
  }

  async function send(isWanted: () => boolean): Promise<TemplateResult> {
    if (options.sure !== undefined && typed["sure"] !== "yes")
      throw new ApiError("invalid_argument", "Tick this box to continue.", "sure");
    const request = requestNow();
    const answer = await api.call(options.method, request);
    return isWanted() ? options.done(answer, request) : html``;
  }

  async function submit(event: SubmitEvent): Promise<void> {
    event.preventDefault();
    if (sent.isBusy) return;
    const given = typed;
    if (!(await sent.load(send))) return;
    if (sent.problem === undefined) forgetSent(given);
    const wrong = sent.field === undefined ? undefined : fieldOf(fieldsNow(), sent.field);
    const part = sent.problem === undefined ? "result" : (wrong?.name ?? "problem");
    // After rendering.
    queueMicrotask(() => document.getElementById(`${options.id}-${part}`)?.focus());
  }

  /** Drops values that were sent, unless they were changed since: what is stored now, secrets, and the confirmation. */
  function forgetSent(given: Values): void {
    const secrets = fieldsNow().flatMap(({ kind, name }) => (kind === "secret" ? name : []));
    const isSpent = (name: string) => options.stored !== undefined || name === "sure" || secrets.includes(name);
    typed = Object.fromEntries(
      Object.entries(typed).filter(([name, value]) => value !== given[name] || !isSpent(name)),
    );
    // What was typed since is based on the answer.
    base = Object.keys(typed).length === 0 ? undefined : options.stored?.();
    update();
  }

  function command(): Command | undefined {
    try {
      return commandFor(options.method, requestNow());
    } catch {
      // The error is shown when the form is submitted.
      return undefined;
    }
  }

  return {
    get isOver() {
      return options.isLast === true && sent.value !== undefined;
    },
    get values() {
      return valuesNow();
    },
    fill(given) {
      typed = { ...typed, ...given };
      update();
    },
    clear() {
      typed = {};
      base = undefined;
      views.clear();
      sent.clear();
    },
    render() {
      const { id, sure, isLast } = options;
      const values = valuesNow();
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
              ${fields.map((field) => views.render(field, values[field.name] ?? "", field === wrong ? sent.problem : undefined))}
            </div>
            <p class="actions">
              <button type="submit" class=${sure === undefined ? "main" : "danger"} ?disabled=${sent.isBusy}>${button}</button>
              <span role="status">${sent.isBusy ? "Working…" : nothing}</span>
            </p>
          </fieldset>
          <p class="hint" id="${id}-reason">
            ${isAllowed ? nothing : "This token is read-only: only operators can make changes."}
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
    <summary>Equivalent command<span class="unseen">: ${button}</span></summary>
    ${
      command === undefined
        ? html`<p class="hint">Shown once the form is valid.</p>`
        : html`<pre id="${id}-command" tabindex="0" role="region" aria-label="Command: ${button}">${command.text}</pre>
            ${command.input === undefined ? nothing : html`<p class="hint">${command.input}</p>`}
            <p>${copyButton(`Copy the command: ${button}`, command.text, `${id}-command`)}</p>`
    }
  </details>`;
}

/**
 * A secret that is shown only once, with a copy button.
 *
 * @param where a sentence about where to store it.
 */
export function secretView(id: string, label: string, secret: string, where: unknown): TemplateResult {
  return html`<div class="notice">
    <p>${label}, shown only once:</p>
    <pre id=${id} tabindex="0" role="region" aria-label=${label}>${secret}</pre>
    <p>${copyButton(`Copy: ${label}`, secret, id)}</p>
    <p class="hint">${where}</p>
  </div>`;
}

/** A notice about the result. */
export function notice(text: unknown): TemplateResult {
  return html`<p class="notice">${text}</p>`;
}

/**
 * The update mask that names only the changed fields, so that concurrent changes to other fields are kept. Throws
 * ApiError when nothing was changed.
 *
 * @param others further fields to write.
 */
export function changeMask(values: Values, base: Values, others: readonly string[]): string {
  const changed = Object.keys(base).filter((name) => values[name] !== undefined && values[name] !== base[name]);
  const names = [...changed, ...others];
  if (names.length > 0) return names.join();
  throw new ApiError("invalid_argument", "Nothing was changed.");
}
