import { html, nothing, type TemplateResult } from "./lit-html.js";
import { visibleText } from "./text.js";

/** One thing that can be picked. */
export interface Choice {
  /** What is sent. */
  readonly value: string;
  /** What is read. */
  readonly label: string;
  /** What tells it from others of the same name. */
  readonly detail?: string;
  /** Its label means it in other case, too: no other one is told from it by case alone. */
  readonly ignoresCase?: true;
}

/** Of a set that is known, those that have a text in their name or in what is said of them. Pure. */
export function choicesWith(choices: readonly Choice[], text: string): readonly Choice[] {
  const wanted = text.trim().toLowerCase();
  return choices.filter(({ label, detail = "" }) => `${label} ${detail}`.toLowerCase().includes(wanted));
}

/** What a picker needs. */
export interface PickerOptions {
  /** Of its field; begins the ids of its parts. */
  readonly id: string;
  /** What may be meant by a text; asked for while it is typed. */
  readonly find: (text: string) => Promise<readonly Choice[]>;
  /** How a value is read that stands in the field; as it is by default. */
  readonly labelOf?: (value: string) => string;
  /** The value is another one now; what is typed and not picked is a value, too. */
  readonly onValue: (value: string) => void;
}

/** How a picker stands in a form. */
interface PickerView {
  readonly value: string;
  /** Ids of what describes the field. */
  readonly describedBy?: string;
  readonly isWrong?: boolean;
}

/**
 * A field in which something is searched for and picked (the combobox of ARIA 1.2): names are shown, keys are sent. An
 * exact value may be typed or pasted as well.
 */
export interface Picker {
  render(view: PickerView): TemplateResult;
  /** Forgets what was typed and found. */
  clear(): void;
}

/** Typing goes on in this time; then it is searched for. Milliseconds. */
const PAUSE_MS = 120;

/** @param onChange it has to be rendered again. */
export function createPicker(
  onChange: () => void,
  { id, find, labelOf = (value) => value, onValue }: PickerOptions,
): Picker {
  /** What stands in the field while it has the focus; undefined: the value's label. */
  let typed: string | undefined;
  let choices: readonly Choice[] = [];
  /** What the choices were searched for; undefined while what is typed now is still searched for. */
  let soughtText: string | undefined;
  let isOpen = false;
  let active = -1;
  let asked = 0;
  let timer: ReturnType<typeof setTimeout> | undefined;

  /** @param isAsked they are shown in any case. */
  function look(text: string, { isAsked }: { readonly isAsked: boolean }): void {
    clearTimeout(timer);
    asked += 1;
    soughtText = undefined;
    const own = asked;
    timer = setTimeout(
      async () => {
        // What cannot be searched for can still be typed.
        const found = await find(text).catch(() => []);
        if (own !== asked) return;
        choices = found;
        soughtText = text;
        // What is there already needs no suggestion, which would cover what comes below.
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

  /** To the next one, or round to the first; from none to the first or the last. */
  function move(step: number): void {
    const { length } = choices;
    active = active === -1 && step < 0 ? length - 1 : (active + step + length) % Math.max(1, length);
    onChange();
    // Once it is shown: a long list scrolls.
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

  /** What was typed may be the name of one: then that is meant. */
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

/** The one that a text is the key of, or else the name; undefined where none is, or several are. Pure. */
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

/** Pressing it must not take the focus from the field first. */
function choiceView(id: string, { label, detail }: Choice, isActive: boolean, onPick: () => void): TemplateResult {
  const press = (event: Event) => {
    event.preventDefault();
    onPick();
  };
  return html`<li id=${id} role="option" aria-selected=${isActive} @mousedown=${press}>
    <bdi>${visibleText(label)}</bdi>${detail === undefined || detail === label ? nothing : html` <span class="hint"><bdi>${visibleText(detail)}</bdi></span>`}
  </li>`;
}
