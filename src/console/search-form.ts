import { type Field, fieldView } from "./field.js";
import { html, nothing, type TemplateResult } from "./lit-html.js";
import { choicesWith, createPicker, type Picker } from "./picker.js";
import { ERROR_TYPES } from "./remedy.js";
import { NARROW, navigate, type ViewContext } from "./view.js";

/** One field of a search; what stands in it stands in the address, too, so that the view can be sent to somebody. */
export interface SearchField<Name extends string = string> extends Pick<Field, "label" | "choices"> {
  readonly name: Name;
  /** A line of text by default. */
  readonly kind?: "line" | "time" | "choice" | "application" | "provider" | "user" | "errorType";
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

function isErrorType(text: string): boolean {
  return ERROR_TYPES.some(({ value }) => value === text);
}

/**
 * Pickers of applications, providers, error types and users; of users those of the application that stands beside.
 */
export function createSearchForm<Name extends string>(
  { update, directory }: ViewContext,
  { view, label, fields, button = "Search" }: SearchFormOptions<Name>,
): SearchForm<Name> {
  let sought: Readonly<Record<string, string>> = {};
  let values = sought;
  const change = (name: string, value: string) => {
    values = { ...values, [name]: value };
    update();
  };
  const finders = {
    application: directory.findApplications,
    provider: directory.findProviders,
    user: (text: string) => directory.findUsers(values["publicKey"] ?? "", text),
    errorType: async (text: string) => choicesWith(ERROR_TYPES, text),
  };
  const pickers = new Map<string, Picker>(
    fields.flatMap(({ name, kind = "line" }) => {
      const find = finders[kind as keyof typeof finders];
      if (find === undefined) return [];
      const labelOf = kind === "application" ? { labelOf: directory.applicationName } : {};
      const options = { id: `search-${name}`, find, onValue: (value: string) => change(name, value), ...labelOf };
      return [[name, createPicker(update, options)]];
    }),
  );

  function submit(event: SubmitEvent): void {
    event.preventDefault();
    const folded = (event.currentTarget as Element).closest("details");
    // What was found is below.
    folded?.removeAttribute("open");
    folded?.querySelector("summary")?.focus();
    navigate(view, Object.fromEntries(Object.entries(values).map(([name, value]) => [name, value.trim()])));
  }

  function fieldOf({ name, label: text, kind, choices = [] }: SearchField): TemplateResult {
    const field = { name, label: text, choices, kind: kind === "time" || kind === "choice" ? kind : "line" } as const;
    const value = values[name] ?? "";
    // Not before it was searched for: what is typed is not whole yet.
    const isUnknown = kind === "errorType" && value !== "" && sought[name] === value && !isErrorType(value);
    const problem = isUnknown ? "There is no error type of this name." : undefined;
    const state = { value, problem, picker: pickers.get(name) };
    return fieldView(field, { id: "search", change, ...state });
  }

  return {
    enter(parameters) {
      for (const picker of pickers.values()) picker.clear();
      const asked = Object.fromEntries(fields.map(({ name }) => [name, parameters.get(name) ?? ""])) as Sought<Name>;
      sought = asked;
      values = asked;
      return asked;
    },
    render() {
      const form = html`<form class="filter" role="search" aria-label=${label} @submit=${submit}>
        ${fields.map(fieldOf)}
        <button type="submit" class="main">${button}</button>
      </form>`;
      // The first screen of a phone belongs to what is listed.
      if (!matchMedia(NARROW).matches) return form;
      const count = Object.values(sought).filter((value) => value !== "").length;
      return html`<details><summary>Filters${count === 0 ? nothing : ` (${count} in use)`}</summary>${form}</details>`;
    },
  };
}
