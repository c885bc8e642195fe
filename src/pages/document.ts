import { createHash } from "node:crypto";

/** The one style sheet: light and dark, at any width and any size of text, with nothing that has to be loaded. */
const STYLE = `
:root { color-scheme: light dark;
  --line: light-dark(#767676, #8f8f8f); --quiet: light-dark(#595959, #b8b8b8);
  --accent: light-dark(#0b57d0, #a8c7fa); --on-accent: light-dark(#ffffff, #062e6f);
  --good: light-dark(#146c2e, #6dd58c); --care: light-dark(#8c4a00, #ffb870); --bad: light-dark(#b3261e, #f2b8b5); }
body { font: 1rem/1.5 system-ui, sans-serif; margin: 0; background: Canvas; color: CanvasText; overflow-wrap: anywhere; }
main { max-width: 38rem; margin: 0 auto; padding: 2rem 1rem; }
h1 { font-size: 1.5rem; line-height: 1.25; margin: 0 0 1rem; text-wrap: balance; }
ul { list-style: none; margin: 1.5rem 0; padding: 0; }
li { display: flex; flex-wrap: wrap; gap: .75rem 1rem; align-items: center; justify-content: space-between;
  border-top: 1px solid var(--line); padding: .875rem 0; }
li:last-child { border-bottom: 1px solid var(--line); }
h2 { font-size: 1.0625rem; margin: 0; }
li p { margin: 0; }
form { margin: 0; }
a { color: var(--accent); }
.state { color: var(--quiet); }
.state.good { color: var(--good); }
.state.good::before { content: "\\2713\\00a0" / ""; }
.state.care { color: var(--care); }
.state.care::before { content: "!\\00a0" / ""; font-weight: 700; }
.actions { display: flex; flex-wrap: wrap; gap: .5rem; }
.button { box-sizing: border-box; display: inline-block; font: inherit; min-height: 2.75rem; padding: .5625rem 1rem;
  color: var(--accent); background: transparent; border: 1px solid currentColor; border-radius: .5rem;
  text-decoration: none; cursor: pointer; }
.button.main { color: var(--on-accent); background: var(--accent); border-color: var(--accent); }
.button:hover { text-decoration: underline; }
:focus-visible { outline: 3px solid var(--accent); outline-offset: 2px; }
label { display: block; font-weight: 600; }
input { box-sizing: border-box; display: block; font: inherit; width: 100%; min-height: 2.75rem; padding: .5rem .75rem;
  margin: .5rem 0 1.5rem; border: 1px solid var(--line); border-radius: .5rem; }
input[aria-invalid] { border-color: var(--bad); border-width: 2px; }
.hint { color: var(--quiet); margin: 0; }
.notice { border: 1px solid var(--good); border-left-width: .375rem; border-radius: .25rem; padding: .75rem 1rem; }
.notice.bad { border-color: var(--bad); }
.detail { color: var(--quiet); font-size: .875rem; border-top: 1px solid var(--line); margin-top: 2rem; padding-top: 1rem; }
.unseen { position: absolute; width: 1px; height: 1px; overflow: hidden; clip-path: inset(50%); white-space: nowrap; }
`;

/** Markup that is safe to send: every value that was put into it is escaped. */
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
 * Builds markup from a template: text is escaped, for content and quoted attributes alike; markup, and lists of it, go
 * in as they are; undefined and false leave nothing.
 */
export function html(strings: TemplateStringsArray, ...values: readonly Value[]): Html {
  return new Html(strings.reduce((markup, text, at) => markup + text + textFrom(values[at]), ""));
}

function textFrom(value: Value): string {
  if (value === undefined || value === false) return "";
  if (typeof value === "string") return value.replace(/[&<>"']/g, (character) => ESCAPES[character] ?? "");
  return value instanceof Html ? value.text : value.map(({ text }) => text).join("");
}

/** One page. */
export interface Page {
  /** What a screen reader says first: what has just happened, then what the page is for. */
  readonly title: string;
  readonly main: Html;
  /** What its head has besides; undefined for nothing. */
  readonly head?: Html;
}

/** Escaped it would no longer be what the hash is of. */
const STYLE_SHEET = new Html(STYLE);
/** CSP hash source of the one style sheet. */
const STYLE_SOURCE = `'sha256-${createHash("sha256").update(STYLE).digest("base64")}'`;

/** Prints a page as a whole document. */
export function documentFrom({ title, main, head }: Page): string {
  return html`<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>${title}</title>
<style>${STYLE_SHEET}</style>
${head}
</head>
<body>
<main>
${main}
</main>
</body>
</html>
`.text;
}

/** Fields of every answer to a browser, redirects too: addresses here hold what is somebody's own. */
export const PRIVATE_FIELDS: Readonly<Record<string, string>> = {
  "cache-control": "no-store",
  "referrer-policy": "no-referrer",
  "x-content-type-options": "nosniff",
};

/** Fields of every page: nothing runs in it, nothing is loaded, no other site may frame it or see where it was. */
export const PAGE_FIELDS: Readonly<Record<string, string>> = {
  "content-type": "text/html; charset=utf-8",
  "content-security-policy": `default-src 'none'; style-src ${STYLE_SOURCE}; form-action 'self'; frame-ancestors 'none'; base-uri 'none'`,
  "x-frame-options": "DENY",
  ...PRIVATE_FIELDS,
};
