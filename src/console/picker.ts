import { html, nothing, type TemplateResult } from "./lit-html.js";
import { visibleText } from "./text.js";

/** One suggestion of a picker. */
export interface Choice {
  /** The value that is sent. */
  readonly value: string;
  /** The text that is shown. */
  readonly label: string;
  /** Distinguishes it from others with the same label. */
  readonly detail?: string;
  /** The label matches regardless of case: no two labels differ only in case. */
  readonly ignoresCase?: true;
}

/** Filters a known set: keeps the choices whose label or detail contains the text, ignoring case. Pure. */
export function choicesWith(choices: readonly Choice[], text: string): readonly Choice[] {
  const wanted = text.trim().toLowerCase();
  return choices.filter(({ label, detail = "" }) => `${label} ${detail}`.toLowerCase().includes(wanted));
}

/** Options of {@link createPicker}. */
export interface PickerOptions {
  /** Id of the input; also the prefix of the ids of its parts. */
  readonly id: string;
  /** Searches for choices that match a text; called while the user types. */
  readonly find: (text: string) => Promise<readonly Choice[]>;
  /** Label to display for the current value. Default: the value itself. */
  readonly labelOf?: (value: string) => string;
  /** Called with each new value, including text that was typed but not picked. */
  readonly onValue: (value: string) => void;
}

/** State of a picker when it is rendered in a form. */
interface PickerView {
  readonly value: string;
  /** Ids of the elements that describe the field. */
  readonly describedBy?: string;
  readonly isWrong?: boolean;
}

/**
 * A search field with suggestions (the ARIA 1.2 combobox): it shows names and sends keys. An exact value can also be
 * typed or pasted.
 */
export interface Picker {
  render(view: PickerView): TemplateResult;
  /** Forgets what was typed and found. */
  clear(): void;
}

/** Debounce: the search starts when the user has stopped typing for this long, in milliseconds. */
const PAUSE_MS = 120;

/** @param onChange called when the picker must be rendered again. */
export function createPicker(
  onChange: () => void,
  { id, find, labelOf = (value) => value, onValue }: PickerOptions,
): Picker {
  /** Text in the field while the user edits it; undefined: the value's label is shown. */
  let typed: string | undefined;
  let choices: readonly Choice[] = [];
  /** The text that the choices were found for; undefined while a search is running. */
  let soughtText: string | undefined;
  let isOpen = false;
  let active = -1;
  let asked = 0;
  let timer: ReturnType<typeof setTimeout> | undefined;

  /** @param isAsked the user asked for suggestions: search at once and always show them. */
  function look(text: string, { isAsked }: { readonly isAsked: boolean }): void {
    clearTimeout(timer);
    asked += 1;
    soughtText = undefined;
    const own = asked;
    timer = setTimeout(
      async () => {
        // A failed search shows no suggestions; the value can still be typed.
        const found = await find(text).catch(() => []);
        if (own !== asked) return;
        choices = found;
        soughtText = text;
        // A value that is already complete needs no suggestions: they would cover the fields below.
        isOpen = isAsked || !found.some(({ value }) => value === text);
        active = -1;
        onChange();
      },
      isAsked ? 0 : PAUSE_MS,
    );
  }

  function close(): void {
    clearTimeout(timer);
    asked += 1;
    isOpen = false;
    active = -1;
    onChange();
  }

  function pick(choice: Choice | undefined): void {
    if (choice === undefined) return;
    typed = undefined;
    onValue(choice.value);
    close();
  }

  /** Moves to the next or previous choice, wrapping around; from none to the first or the last. */
  function move(step: number): void {
    const { length } = choices;
    active = active === -1 && step < 0 ? length - 1 : (active + step + length) % Math.max(1, length);
    onChange();
    // After rendering: a long list has to scroll.
    queueMicrotask(() => document.getElementById(`${id}-choice-${active}`)?.scrollIntoView({ block: "nearest" }));
  }

  function onKey(event: KeyboardEvent): void {
    const step = { ArrowDown: 1, ArrowUp: -1 }[event.key];
    if (step !== undefined) {
      event.preventDefault();
      if (isOpen) move(step);
      else look(typed ?? "", { isAsked: true });
    } else if (isOpen && event.key === "Escape") {
      close();
    } else if (isOpen && event.key === "Enter" && active !== -1) {
      event.preventDefault();
      pick(choices[active]);
    }
  }

  function onInput(event: Event): void {
    typed = (event.currentTarget as HTMLInputElement).value;
    onValue(typed);
    look(typed, { isAsked: false });
  }

  /** On blur, text that names exactly one choice picks that choice. */
  function onLeave(): void {
    if (typed !== undefined && typed === soughtText) pick(meantBy(typed, choices));
    typed = undefined;
    close();
  }

  return {
    clear() {
      typed = undefined;
      choices = [];
      close();
    },
    render: ({ value, describedBy, isWrong = false }) => html`<span class="picker">
      <input id=${id} role="combobox" aria-autocomplete="list" aria-expanded=${isOpen && choices.length > 0} aria-controls="${id}-choices"
        aria-activedescendant=${active === -1 ? nothing : `${id}-choice-${active}`} aria-describedby=${describedBy ?? nothing}
        aria-invalid=${isWrong} .value=${typed ?? (value === "" ? "" : labelOf(value))} @input=${onInput} @keydown=${onKey}
        @click=${() => look(typed ?? "", { isAsked: true })} @blur=${onLeave} autocomplete="off" spellcheck="false" />
      <ul id="${id}-choices" role="listbox" aria-label="Suggestions" ?hidden=${!isOpen || choices.length === 0}>
        ${choices.map((choice, at) => choiceView(`${id}-choice-${at}`, choice, at === active, () => pick(choice)))}
      </ul>
    </span>`,
  };
}

/** The choice whose value, or else whose label, is the text; undefined where none or several match. Pure. */
function meantBy(text: string, choices: readonly Choice[]): Choice | undefined {
  const wanted = text.trim().toLowerCase();
  const rules: ReadonlyArray<(choice: Choice) => boolean | undefined> = [
    ({ value }) => value === text,
    ({ label }) => label === text,
    ({ label, ignoresCase }) => ignoresCase && label.toLowerCase() === wanted,
  ];
  const [named, ...others] = rules.map((rule) => choices.filter(rule)).find(({ length }) => length > 0) ?? [];
  return others.length === 0 ? named : undefined;
}

/** Uses mousedown, with its default prevented: a click would blur the field first. */
function choiceView(id: string, { label, detail }: Choice, isActive: boolean, onPick: () => void): TemplateResult {
  const press = (event: Event) => {
    event.preventDefault();
    onPick();
  };
  return html`<li id=${id} role="option" aria-selected=${isActive} @mousedown=${press}>
    <bdi>${visibleText(label)}</bdi>${detail === undefined || detail === label ? nothing : html` <span class="hint"><bdi>${visibleText(detail)}</bdi></span>`}
  </li>`;
}
