import { createHash } from "node:crypto";
import { Html, html } from "./html.js";
import { STYLE } from "./style.js";

/** One page. */
export interface Page {
  /** What a screen reader says first: what has just happened, then what the page is for. */
  readonly title: string;
  readonly main: Html;
}

/** CSP hash source of the one style sheet. */
const STYLE_SOURCE = `'sha256-${createHash("sha256").update(STYLE).digest("base64")}'`;

/** Prints a page as a whole document. */
export function documentFrom({ title, main }: Page): string {
  return html`<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>${title}</title>
<style>${new Html(STYLE)}</style>
</head>
<body>
<main>
${main}
</main>
</body>
</html>
`.text;
}

/**
 * Fields of every page: nothing runs in it, nothing is loaded, no other site may frame it or see where it was.
 *
 * @param formTargets origins that its forms may lead to besides this one, as CSP sources; a browser also counts where
 *   a form's answer redirects to.
 */
export function pageFields(formTargets: readonly string[] = []): Readonly<Record<string, string>> {
  const formAction = ["'self'", ...formTargets].join(" ");
  return {
    "content-type": "text/html; charset=utf-8",
    "content-security-policy": `default-src 'none'; style-src ${STYLE_SOURCE}; form-action ${formAction}; frame-ancestors 'none'; base-uri 'none'`,
    "x-frame-options": "DENY",
    ...PRIVATE_FIELDS,
  };
}

/** Fields of every answer to a browser, redirects too: addresses here hold what is somebody's own. */
export const PRIVATE_FIELDS: Readonly<Record<string, string>> = {
  "cache-control": "no-store",
  "referrer-policy": "no-referrer",
  "x-content-type-options": "nosniff",
};
