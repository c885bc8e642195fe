import { html, nothing, type TemplateResult } from "./lit-html.js";
import { createPicker, type Picker } from "./picker.js";
import { instantFrom, localFrom } from "./text.js";
import { navigate, type ViewContext } from "./view.js";

/** One field of a search; what stands in it stands in the address, too, so that the view can be sent to somebody. */
export interface SearchField<Name extends string = string> {
  readonly name: Name;
  readonly label: string;
  /** A line of text by default. */
  readonly kind?: "text" | "application" | "provider" | "user" | "time" | "choice";
  /** Values and labels of a `choice`. */
  readonly choices?: ReadonlyArray<readonly [value: string, label: string]>;
}

/** What is searched for, by the names of the fields; empty for what does not matter. */
export type Sought<Name extends string = string> = Readonly<Record<Name, string>>;

/** What a search form needs. */
interface SearchFormOptions<Name extends string> {
  /** The view's name in the address. */
  readonly view: string;
  /** What is searched, for those who do not see it. */
  readonly label: string;
  readonly fields: ReadonlyArray<SearchField<Name>>;
  readonly button?: string;
}

/** A form whose sending leads to the address of what it asks for. */
export interface SearchForm<Name extends string> {
  /** What the address asks for; it stands in the fields from then on. */
  enter(parameters: URLSearchParams): Sought<Name>;
  render(): TemplateResult;
}

/** Pickers of applications, providers and users; of users those of the application that stands beside. */
export function createSearchForm<Name extends string>(
  { update, directory }: ViewContext,
  { view, label, fields, button = "Search" }: SearchFormOptions<Name>,
): SearchForm<Name> {
  let values: Readonly<Record<string, string>> = {};
  const change = (name: string, value: string) => {
    values = { ...values, [name]: value };
    update();
  };
  const finders = {
    application: directory.findApplications,
    provider: directory.findProviders,
    user: (text: string) => directory.findUsers(values["publicKey"] ?? "", text),
  };
  const pickers = new Map<string, Picker>(
    fields.flatMap(({ name, kind = "text" }) => {
      const find = finders[kind as keyof typeof finders];
      if (find === undefined) return [];
      const labelOf = kind === "application" ? { labelOf: directory.applicationName } : {};
      const options = { id: `search-${name}`, find, onValue: (value: string) => change(name, value), ...labelOf };
      return [[name, createPicker(update, options)]];
    }),
  );

  function submit(event: SubmitEvent): void {
    event.preventDefault();
    navigate(view, Object.fromEntries(Object.entries(values).map(([name, value]) => [name, value.trim()])));
  }

  return {
    enter(parameters) {
      for (const picker of pickers.values()) picker.clear();
      const sought = Object.fromEntries(fields.map(({ name }) => [name, parameters.get(name) ?? ""])) as Sought<Name>;
      values = sought;
      return sought;
    },
    render: () => html`<form class="filter" role="search" aria-label=${label} @submit=${submit}>
      ${fields.map((field) => fieldView(field, values[field.name] ?? "", change, pickers.get(field.name)))}
      <button type="submit" class="main">${button}</button>
    </form>`,
  };
}

function fieldView(
  { name, label, kind = "text", choices = [] }: SearchField,
  value: string,
  change: (name: string, value: string) => void,
  picker: Picker | undefined,
): TemplateResult {
  const id = `search-${name}`;
  const onInput = (event: Event) => change(name, (event.currentTarget as HTMLInputElement).value);
  const onTime = (event: Event) => change(name, instantFrom((event.currentTarget as HTMLInputElement).value));
  const input =
    picker !== undefined
      ? picker.render({ value })
      : kind === "time"
        ? html`<input id=${id} type="datetime-local" step="1" .value=${localFrom(value)} @change=${onTime} />`
        : kind === "choice"
          ? html`<select id=${id} @change=${onInput}>
              ${choices.map(([each, text]) => html`<option value=${each} .selected=${each === value}>${text}</option>`)}
            </select>`
          : html`<input id=${id} .value=${value} @input=${onInput} autocomplete="off" spellcheck="false" />`;
  return html`<p class="field"><label for=${id}>${label}</label>${input}${nothing}</p>`;
}
