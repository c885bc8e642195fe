import { html, nothing, type TemplateResult } from "./lit-html.js";
import { createPicker, type Picker, type PickerOptions } from "./picker.js";
import { instantFrom, localFrom, visibleText } from "./text.js";

/** One field of a form. */
export interface Field {
  readonly name: string;
  readonly label: string;
  /**
   * Its path in the API, such as `application.display_name`: API errors for that path are shown beside the field.
   * Default: its name in snake case.
   */
  readonly path?: string;
  /** Default: `line`. */
  readonly kind?: "line" | "secret" | "lines" | "choice" | "number" | "time" | "flag" | "picture";
  readonly hint?: unknown;
  /** Values and labels of a `choice`. */
  readonly choices?: ReadonlyArray<readonly [value: string, label: string]>;
  /** Search function for suggestions; makes the field a picker. */
  readonly find?: PickerOptions["find"];
  readonly labelOf?: PickerOptions["labelOf"];
  readonly isWide?: boolean;
}

/** Values of a form by field name; `yes` for a ticked box, base64 for a picture. */
export type Values = Readonly<Record<string, string>>;

/** The field with this API path, or with a parent of it, as for `oauth_client.origin_parameters.subdomain`. */
export function fieldOf(fields: readonly Field[], path: string): Field | undefined {
  return fields.find((field) => pathOf(field) === path) ?? fields.find((field) => path.startsWith(`${pathOf(field)}.`));
}

function pathOf({ path, name }: Field): string {
  return path ?? name.replace(/[A-Z]/g, (letter) => `_${letter.toLowerCase()}`);
}

/** Fields whose paths in the API lie within a message, such as `application`. */
export function fieldsWithin(parent: string, fields: readonly Field[]): readonly Field[] {
  return fields.map((field) => ({ ...field, path: `${parent}.${pathOf(field)}` }));
}

/** The id by which the application knows a user. */
export function userField(find: PickerOptions["find"]): Field {
  const hint = "Your application's own id for the user. Calls must use exactly this id.";
  return { name: "userId", label: "User id", hint, find };
}

/** Renders the fields of a form. */
export interface FieldViews {
  /** @param problem why the value is wrong; undefined when it is not. */
  render(field: Field, value: string, problem: string | undefined): TemplateResult;
  /** Forgets what was typed into pickers and found by them. */
  clear(): void;
}

/**
 * @param formId id of the form.
 * @param update called when a field must be rendered again.
 * @param change called with each new value.
 */
export function createFieldViews(formId: string, update: () => void, change: FieldState["change"]): FieldViews {
  const pickers = new Map<string, Picker>();

  function pickerOf({ name, find, labelOf }: Field): Picker | undefined {
    if (find === undefined) return undefined;
    const own = { id: `${formId}-${name}`, find, onValue: (value: string) => change(name, value) };
    const picker = pickers.get(name) ?? createPicker(update, { ...own, ...(labelOf && { labelOf }) });
    pickers.set(name, picker);
    return picker;
  }

  return {
    render: (field, value, problem) =>
      fieldView(field, `${formId}-${field.name}`, { value, problem, change, picker: pickerOf(field) }),
    clear() {
      for (const picker of pickers.values()) picker.clear();
    },
  };
}

interface FieldState {
  readonly value: string;
  readonly problem: string | undefined;
  readonly change: (name: string, value: string) => void;
  /** The picker, if the field has `find`. */
  readonly picker: Picker | undefined;
}

type Input = HTMLInputElement | HTMLSelectElement | HTMLTextAreaElement;

function fieldView(field: Field, id: string, state: FieldState): TemplateResult {
  const { kind = "line", label, hint, isWide } = field;
  const notes = html`${hint === undefined ? nothing : html`<span class="hint" id="${id}-hint">${hint}</span>`}
    <span class="problem" id="${id}-wrong">${state.problem === undefined ? nothing : visibleText(state.problem)}</span>`;
  if (kind === "flag") return tickView(field, id, state, notes);
  return html`<p class=${isWide || kind === "lines" ? "wide" : ""}>
    <label for=${id}>${label}</label>
    ${(INPUTS[kind] ?? lineView)(field, id, state)}
    ${notes}
  </p>`;
}

const INPUTS: Partial<Record<NonNullable<Field["kind"]>, typeof lineView>> = {
  choice: choiceView,
  lines: linesView,
  picture: pictureView,
  time: timeView,
};

const onInput =
  ({ name }: Field, { change }: FieldState) =>
  (event: Event) =>
    change(name, (event.currentTarget as Input).value);

function lineView(field: Field, id: string, state: FieldState): TemplateResult {
  const { value, problem, picker } = state;
  if (picker !== undefined)
    return picker.render({ value, describedBy: notesOf(field, id), isWrong: problem !== undefined });
  const isSecret = field.kind === "secret";
  // Browsers ignore "off" on password fields and would offer the user's own passwords.
  const completion = isSecret ? "new-password" : "off";
  const mode = field.kind === "number" ? "numeric" : nothing;
  return html`<input id=${id} type=${isSecret ? "password" : "text"} inputmode=${mode} .value=${state.value}
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

/** Read limit for a picture, in bytes: one above the relay's limit of 16 KiB, so that the relay refuses the file. */
const MAX_PICTURE_BYTES = 16 * 1024 + 1;

function pictureView(field: Field, id: string, { value, problem, change }: FieldState): TemplateResult {
  const { name, label } = field;
  const onFile = async (event: Event) => {
    const input = event.currentTarget as HTMLInputElement;
    const bytes = await input.files?.[0]?.slice(0, MAX_PICTURE_BYTES).arrayBuffer();
    if (bytes !== undefined) change(name, btoa(String.fromCharCode(...new Uint8Array(bytes))));
  };
  // Cleared on click, before the choice, so that the same file can be chosen again; clearing it afterwards would hide
  // the file's name.
  const forget = (event: Event) => {
    (event.currentTarget as HTMLInputElement).value = "";
  };
  const remove = () => change(name, "");
  return html`<span class="picture">
    <input id=${id} type="file" accept="image/png,image/jpeg,image/webp" @click=${forget} @change=${onFile} aria-describedby=${notesOf(field, id)}
      aria-invalid=${problem !== undefined} />
    ${value === "" ? nothing : html`${previewOf(label, value)} <button type="button" aria-label="Remove it: ${label}" @click=${remove}>Remove it</button>`}
  </span>`;
}

/** Side of the preview, in pixels. */
const PREVIEW_SIDE = 112;
let preview: { readonly of: string; readonly canvas: HTMLCanvasElement } | undefined;

/** Draws the picture on a canvas, once: the console's Content Security Policy allows no images from elsewhere. */
function previewOf(label: string, base64: string): HTMLCanvasElement {
  if (preview?.of === base64) return preview.canvas;
  const canvas = Object.assign(document.createElement("canvas"), { width: PREVIEW_SIDE, height: PREVIEW_SIDE });
  canvas.setAttribute("role", "img");
  canvas.setAttribute("aria-label", `Preview: ${label}`);
  preview = { of: base64, canvas };
  draw(canvas, base64).catch(() => sayNoPicture(canvas));
  return canvas;
}

async function draw(canvas: HTMLCanvasElement, base64: string): Promise<void> {
  const bytes = Uint8Array.from(atob(base64), (character) => character.charCodeAt(0));
  const bitmap = await createImageBitmap(new Blob([bytes]));
  const scale = PREVIEW_SIDE / Math.max(bitmap.width, bitmap.height);
  const [width, height] = [bitmap.width * scale, bitmap.height * scale];
  canvas.getContext("2d")?.drawImage(bitmap, (PREVIEW_SIDE - width) / 2, (PREVIEW_SIDE - height) / 2, width, height);
  bitmap.close();
}

/** Shown at once; the relay also refuses the picture when the form is sent. */
function sayNoPicture(canvas: HTMLCanvasElement): void {
  const text = "Not a picture";
  canvas.setAttribute("aria-label", text);
  const context = canvas.getContext("2d");
  if (context === null) return;
  context.fillStyle = getComputedStyle(canvas).color;
  context.textAlign = "center";
  context.fillText(text, PREVIEW_SIDE / 2, PREVIEW_SIDE / 2, PREVIEW_SIDE);
}

/** Shows local time in the browser's time zone; the value is UTC. */
function timeView({ name }: Field, id: string, { value, change }: FieldState): TemplateResult {
  const onTime = (event: Event) => change(name, instantFrom((event.currentTarget as Input).value));
  return html`<input id=${id} type="datetime-local" step="1" .value=${localFrom(value)} @change=${onTime} />`;
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
