import { createHash } from "node:crypto";
import type { Application } from "../applications/application.js";
import { iconTypeOf, iconUriOf } from "../applications/icon.js";
import type { HttpResponse } from "../http/exchange.js";
import { type Reason, RelayError } from "../model/errors.js";
import type { ConnectOutcome } from "../oauth/callback.js";
import type { Provider } from "../providers/provider.js";
import { Html, html } from "./html.js";
import type { Texts, Told } from "./texts/texts.js";

/** The only style sheet: light and dark, for any width and text size; it loads nothing. */
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
li > div:not(.actions) { flex: 1 1 8rem; }
h2.group { margin: 2rem 0 0; color: var(--quiet); }
h2.group + ul { margin-top: .5rem; }
.mark { width: 3.5rem; line-height: 3.5rem; margin: 0 0 1rem; text-align: center; font-size: 1.5rem; font-weight: 700;
  color: var(--on-accent); background: var(--accent); border-radius: .75rem; overflow: hidden; }
.picture { background: #ffffff; }
.picture img { display: block; width: 3.5rem; height: 3.5rem; object-fit: contain; }
.scopes { margin: 0 0 1rem; }
.scopes li { display: block; padding: .375rem 0; }
.scopes span + code { display: block; color: var(--quiet); font-size: .875rem; }
.initial { flex: none; width: 2.75rem; line-height: 2.75rem; text-align: center; font-weight: 600;
  color: var(--quiet); border: 1px solid var(--line); border-radius: .5rem; }
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
input, select, textarea { box-sizing: border-box; display: block; font: inherit; width: 100%; min-height: 2.75rem; padding: .5rem .75rem;
  margin: .5rem 0 1.5rem; border: 1px solid var(--line); border-radius: .5rem; }
[aria-invalid] { border-color: var(--bad); border-width: 2px; }
.hint { color: var(--quiet); margin: 0; }
.notice { border: 1px solid var(--good); border-left-width: .375rem; border-radius: .25rem; padding: .75rem 1rem; }
.notice.care { border-color: var(--care); }
.notice.bad { border-color: var(--bad); }
form + .hint { margin-top: 1rem; }
.detail { color: var(--quiet); font-size: .875rem; border-top: 1px solid var(--line); margin-top: 2rem; padding-top: 1rem; }
.unseen { position: absolute; width: 1px; height: 1px; overflow: hidden; clip-path: inset(50%); white-space: nowrap; }
`;

/** One page. */
export interface Page {
  /** Read first by screen readers: what has just happened, then what the page is for. */
  readonly title: string;
  readonly main: Html;
  /** The application's mark, shown above `main`; undefined for none. */
  readonly mark?: Mark;
  /** Additional markup for `<head>`; undefined for none. */
  readonly head?: Html;
  /** Message for the window that opened this one; undefined for none. */
  readonly told?: OpenerMessage;
}

/** The visual mark of an application: its icon, or its initial, in the application's colour if it has one. */
export interface Mark extends Pick<Application, "name" | "accentColor"> {
  readonly icon: Uint8Array;
}

/** A message that only pages of one origin can read (`postMessage()` with a target origin). */
interface OpenerMessage {
  readonly origin: string;
  /** JSON. */
  readonly message: string;
}

/** The message with the outcome of connecting that `connectAccount()` of the client package waits for. Pure. */
export function connectMessage(origin: string, provider: string, outcome: ConnectOutcome): OpenerMessage {
  return { origin, message: JSON.stringify({ type: "provider-call-relay.connect", provider, ...outcome }) };
}

/**
 * The only script: sends the message to the opener. Without one, since a provider's page severed the link between the
 * windows, it closes the window.
 */
const SCRIPT = `const { origin, message } = document.currentScript.dataset;
if (opener) opener.postMessage(JSON.parse(message), origin); else close();`;

/** Not escaped: the CSP hash covers the exact text. */
const STYLE_SHEET = new Html(STYLE);
const TELL_OPENER = new Html(SCRIPT);
const STYLE_SOURCE = hashSourceOf(STYLE);
const SCRIPT_SOURCE = hashSourceOf(SCRIPT);

/** Content Security Policy Level 3, section 2.3.1. */
function hashSourceOf(text: string): string {
  return `'sha256-${createHash("sha256").update(text).digest("base64")}'`;
}

const NO_MARK: Mark = { name: "", accentColor: "", icon: new Uint8Array(0) };

/** The only style rule that differs between applications; anything but a hex colour is ignored. */
function accentStyle({ mark: { accentColor } = NO_MARK }: Page): string | undefined {
  if (!/^#[0-9a-f]{6}$/.test(accentColor)) return undefined;
  return `.mark { background: ${accentColor}; color: ${isLight(accentColor) ? "#000000" : "#ffffff"}; }`;
}

/** Whether black text has more contrast on the colour than white: relative luminance of WCAG 2.2. */
function isLight(color: string): boolean {
  const [red = 0, green = 0, blue = 0] = [1, 3, 5].map((at) => {
    const part = Number.parseInt(color.slice(at, at + 2), 16) / 255;
    return part <= 0.04045 ? part / 12.92 : ((part + 0.055) / 1.055) ** 2.4;
  });
  return 0.2126 * red + 0.7152 * green + 0.0722 * blue > 0.179;
}

/** Renders a page as a whole document. @param language of its texts, an RFC 5646 tag. */
export function documentFrom(page: Page, language: string): string {
  const { title, main, head, told, mark } = page;
  const accent = accentStyle(page);
  return html`<!doctype html>
<html lang="${language}">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>${title}</title>
<style>${STYLE_SHEET}</style>
${accent !== undefined && html`<style>${new Html(accent)}</style>`}
${head}
</head>
<body>
<main>
${mark !== undefined && markOf(mark)}${main}
</main>
${told !== undefined && html`<script data-origin="${told.origin}" data-message="${told.message}">${TELL_OPENER}</script>`}
</body>
</html>
`.text;
}

function markOf({ name, icon }: Mark): Html {
  const uri = iconUriOf(icon);
  if (uri === undefined) return html`<p class="mark" aria-hidden="true">${initialOf(name)}</p>\n`;
  return html`<p class="mark picture" aria-hidden="true"><img src="${uri}" alt=""></p>\n`;
}

/** The first letter or digit of a name. */
export function initialOf(name: string): string {
  return (/[\p{L}\p{N}]/u.exec(name)?.[0] ?? "#").toUpperCase();
}

/** Fields of every answer to a browser, including redirects, since addresses here contain private data. */
const PRIVATE_FIELDS: Readonly<Record<string, string>> = {
  "cache-control": "no-store",
  "referrer-policy": "no-referrer",
  "x-content-type-options": "nosniff",
};

/** Content Security Policy: allows only scripts and styles with a known hash and loads nothing; icons are data URIs. */
function policyFor(page: Page): string {
  const accent = accentStyle(page);
  const styles = accent === undefined ? STYLE_SOURCE : `${STYLE_SOURCE} ${hashSourceOf(accent)}`;
  const scripts = page.told === undefined ? "" : `; script-src ${SCRIPT_SOURCE}`;
  const images = iconTypeOf((page.mark ?? NO_MARK).icon) === undefined ? "" : "; img-src data:";
  return `default-src 'none'; style-src ${styles}${images}; form-action 'self'; frame-ancestors 'none'; base-uri 'none'${scripts}`;
}

/** Fields of every page: no other site may frame it or learn its address. */
const PAGE_FIELDS: Readonly<Record<string, string>> = {
  "content-type": "text/html; charset=utf-8",
  "x-frame-options": "DENY",
  vary: "accept-language",
  ...PRIVATE_FIELDS,
};

interface SendOptions {
  /** Value of `Set-Cookie`; undefined for none. */
  readonly cookie?: string | undefined;
}

/** Sends a page in the reader's language. */
export function sendPage(
  response: HttpResponse,
  statusCode: number,
  page: Page,
  { cookie, texts: { language } }: SendOptions & { readonly texts: Texts },
): void {
  const body = Buffer.from(documentFrom(page, language));
  response.writeHead(statusCode, {
    ...PAGE_FIELDS,
    "content-language": language,
    "content-security-policy": policyFor(page),
    ...cookieField(cookie),
    "content-length": String(body.length),
  });
  response.end(body);
}

/** Redirects the browser with 303, so that it uses GET (RFC 9110 section 15.4.4). */
export function sendRedirect(response: HttpResponse, location: string, { cookie }: SendOptions = {}): void {
  response.writeHead(303, { location, "content-length": "0", ...PRIVATE_FIELDS, ...cookieField(cookie) });
  response.end();
}

function cookieField(cookie: string | undefined): Readonly<Record<string, string>> {
  return cookie === undefined ? {} : { "set-cookie": cookie };
}

/** What happened, and a detail for those who run the application. */
interface Message extends Told {
  /** In English. */
  readonly detail: string | undefined;
}

const KINDS: Partial<Record<Reason, "wrongLink" | "notSetUp">> = {
  CALL_FORMAT_ERROR: "wrongLink",
  INVALID_PUBLIC_KEY: "wrongLink",
  CALLER_NOT_ALLOWED: "wrongLink",
  INVALID_PROVIDER: "notSetUp",
  PROVIDER_MISCONFIGURED: "notSetUp",
};

/** The message to show for an error; an unexpected error shows no detail. */
export function messageFromError(error: unknown, texts: Texts): Message {
  if (!(error instanceof RelayError)) return { ...texts.notNow, detail: undefined };
  return { ...texts[KINDS[error.reason] ?? "notNow"], detail: error.message };
}

/** A page with only a message. Pure. */
export function messagePage({ title, advice, detail }: Message): Page {
  return {
    title,
    main: html`<h1>${title}</h1>
<p>${advice}</p>
${detail !== undefined && html`<p class="detail" lang="en">${detail}</p>`}`,
  };
}

/** A map, not an object: the code comes from the provider and may be any word, even `constructor`. */
const WHY: ReadonlyMap<string, keyof Texts["why"]> = new Map([
  ["access_denied", "denied"],
  ["invalid_grant", "late"],
  ["temporarily_unavailable", "unreachable"],
  ["server_error", "providerFails"],
  ["invalid_scope", "scope"],
  ["invalid_client", "notSetUp"],
  ["unauthorized_client", "notSetUp"],
]);

/** The message to show when an attempt to connect has ended. Pure. */
export function messageFromOutcome(
  { displayName }: Pick<Provider, "displayName">,
  outcome: ConnectOutcome,
  texts: Texts,
): Message {
  if (outcome.outcome === "success") {
    return { title: texts.isConnected(displayName), advice: texts.closeWindow, detail: undefined };
  }
  const advice = texts.why[WHY.get(outcome.error) ?? "other"];
  return { title: texts.isNotConnected(displayName), advice, detail: texts.errorCode(outcome.error) };
}
