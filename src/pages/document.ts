import { createHash } from "node:crypto";
import { Html, html } from "./html.js";

/** One page: what stands in its title and in its body. */
export interface Page {
  readonly title: string;
  readonly main: Html;
  /** What its head has besides; undefined for nothing. */
  readonly head?: Html;
}

/** Works in light and dark, at any width, and at any size of text. */
const STYLE = `
:root { color-scheme: light dark; --line: light-dark(#767676, #8f8f8f); --accent: light-dark(#0b57d0, #a8c7fa); }
body { font: 1rem/1.5 system-ui, sans-serif; margin: 0; background: Canvas; color: CanvasText; }
main { max-width: 38rem; margin: 0 auto; padding: 2rem 1rem; }
h1 { font-size: 1.5rem; line-height: 1.25; }
ul { list-style: none; margin: 1.5rem 0; padding: 0; }
li { display: flex; flex-wrap: wrap; gap: .5rem 1rem; align-items: center; justify-content: space-between;
  border-top: 1px solid var(--line); padding: .75rem 0; }
li:last-child { border-bottom: 1px solid var(--line); }
h2 { font-size: 1rem; margin: 0; }
li p { margin: 0; }
form { margin: 0; }
.actions { display: flex; flex-wrap: wrap; gap: .5rem; }
.button { font: inherit; color: var(--accent); background: transparent; border: 1px solid currentColor;
  border-radius: .375rem; padding: .5rem .875rem; text-decoration: none; cursor: pointer; }
.button:hover { text-decoration: underline; }
.button:focus-visible, a:focus-visible, input:focus-visible { outline: 3px solid var(--accent); outline-offset: 2px; }
label { display: block; font-weight: 600; }
input { font: inherit; padding: .5rem; border: 1px solid var(--line); border-radius: .375rem; width: 100%;
  box-sizing: border-box; margin: .25rem 0 1rem; }
.notice { border-left: .25rem solid var(--accent); padding: .5rem 1rem; }
.detail { font-size: .875rem; overflow-wrap: anywhere; }
`;

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
