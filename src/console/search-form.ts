import { createFieldViews, type Field } from "./field.js";
import { html, nothing, type TemplateResult } from "./lit-html.js";
import { ApiError } from "./loading.js";
import { choicesWith } from "./picker.js";
import { ERROR_TYPES } from "./remedy.js";
import { NARROW, navigate, type ViewContext } from "./view.js";

/** One field of a search. Its value is part of the address, so that a search can be shared as a link. */
export interface SearchField<Name extends string = string> extends Pick<Field, "label" | "choices"> {
  readonly name: Name;
  /** Default: `line`. */
  readonly kind?: "line" | "time" | "choice" | "application" | "provider" | "user" | "errorType";
}

/** Search values by field name; empty for any. */
export type Sought<Name extends string = string> = Readonly<Record<Name, string>>;

/** Options of {@link createSearchForm}. */
interface SearchFormOptions<Name extends string> {
  /** The view's name in the address. */
  readonly view: string;
  /** What is searched, for screen readers. */
  readonly label: string;
  readonly fields: ReadonlyArray<SearchField<Name>>;
  readonly button?: string;
}

/** A form that navigates to the address of its search when submitted. */
export interface SearchForm<Name extends string> {
  /** Reads the search from the address, fills the fields with it, and returns it. */
  enter(parameters: URLSearchParams): Sought<Name>;
  render(): TemplateResult;
}

/** Throws ApiError for a user's id without its application: it is unique only within one. */
export function requireApplication(userId: string, { publicKey }: Sought<"publicKey">): void {
  if (userId === "" || publicKey !== "") return;
  throw new ApiError("invalid_argument", "Choose the application as well: each application has its own user ids.");
}

function isErrorType(text: string): boolean {
  return ERROR_TYPES.some(({ value }) => value === text);
}

/**
 * Creates a search form with pickers for applications, providers, error types and users. The user picker suggests users
 * of the application chosen in the same form.
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
  const views = createFieldViews("search", update, change);
  const kinds: Readonly<Record<NonNullable<SearchField["kind"]>, Partial<Field>>> = {
    line: {},
    time: { kind: "time" },
    choice: { kind: "choice" },
    application: { find: directory.findApplications, labelOf: directory.applicationName },
    provider: { find: directory.findProviders },
    user: { find: (text) => directory.findUsers(values["publicKey"] ?? "", text) },
    errorType: { find: async (text) => choicesWith(ERROR_TYPES, text) },
  };

  function submit(event: SubmitEvent): void {
    event.preventDefault();
    const folded = (event.currentTarget as Element).closest("details");
    // Fold the form: the results are below it.
    folded?.removeAttribute("open");
    folded?.querySelector("summary")?.focus();
    navigate(view, Object.fromEntries(Object.entries(values).map(([name, value]) => [name, value.trim()])));
  }

  function fieldOf({ kind = "line", ...field }: SearchField): TemplateResult {
    const { name } = field;
    const value = values[name] ?? "";
    // Only after the search: text being typed is incomplete.
    const isUnknown = kind === "errorType" && value !== "" && sought[name] === value && !isErrorType(value);
    const problem = isUnknown ? "There is no error type with this name." : undefined;
    return views.render({ ...field, ...kinds[kind] }, value, problem);
  }

  return {
    enter(parameters) {
      views.clear();
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
      // On a phone the form is folded, so that the results fit on the first screen.
      if (!matchMedia(NARROW).matches) return form;
      const count = Object.values(sought).filter((value) => value !== "").length;
      return html`<details><summary>Filters${count === 0 ? nothing : ` (${count} in use)`}</summary>${form}</details>`;
    },
  };
}
