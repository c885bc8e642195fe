import { createHash } from "node:crypto";
import { Html, html } from "./html.js";
import { STYLE } from "./style.js";

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
