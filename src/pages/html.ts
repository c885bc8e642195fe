/** Markup that is safe to send: every value in it is escaped. */
export class Html {
  readonly text: string;

  constructor(text: string) {
    this.text = text;
  }
}

type Value = string | Html | undefined | false | readonly Html[];

const ESCAPES: Readonly<Record<string, string>> = {
  "&": "&amp;",
  "<": "&lt;",
  ">": "&gt;",
  '"': "&quot;",
  "'": "&#39;",
};

/**
 * Builds markup from a template. Text is escaped, for content and quoted attributes alike; markup and lists of markup
 * are inserted unchanged; undefined and false insert nothing.
 */
export function html(strings: TemplateStringsArray, ...values: readonly Value[]): Html {
  return new Html(strings.reduce((markup, text, at) => markup + text + textFrom(values[at]), ""));
}

function textFrom(value: Value): string {
  if (value === undefined || value === false) return "";
  if (typeof value === "string") return value.replace(/[&<>"']/g, (character) => ESCAPES[character] ?? "");
  return value instanceof Html ? value.text : value.map(({ text }) => text).join("");
}

/** Untrusted text with each control and format character (such as bidirectional ones) replaced by U+FFFD. */
export function visibleText(text: string): string {
  return text.replace(/[\p{Cc}\p{Cf}\p{Zl}\p{Zp}]/gu, "\ufffd");
}
