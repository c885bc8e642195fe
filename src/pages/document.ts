import { createHash } from "node:crypto";
import type { HttpResponse } from "../http/exchange.js";
import { type Reason, RelayError } from "../model/errors.js";
import type { ConnectOutcome } from "../oauth/callback.js";
import type { Provider } from "../providers/provider.js";

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
li > div:not(.actions) { flex: 1 1 10rem; }
h2.group { margin: 2rem 0 0; color: var(--quiet); }
h2.group + ul { margin-top: .5rem; }
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
  /** What the window that opened this one is told; undefined for nothing. */
  readonly told?: OpenerMessage;
}

/** A message that pages of one origin alone can read. */
interface OpenerMessage {
  readonly origin: string;
  /** JSON. */
  readonly message: string;
}

/** Says how connecting ended, as `connectAccount()` of the client package hears it. Pure. */
export function connectMessage(origin: string, provider: string, outcome: ConnectOutcome): OpenerMessage {
  return { origin, message: JSON.stringify({ type: "provider-call-relay.connect", provider, ...outcome }) };
}

/** The one script: a page that was opened by nobody who can hear it, since a provider's page cut the tie, ends itself. */
const SCRIPT = `const { origin, message } = document.currentScript.dataset;
if (opener) opener.postMessage(JSON.parse(message), origin); else close();`;

/** Escaped it would no longer be what the hash is of. */
const STYLE_SHEET = new Html(STYLE);
const TELL_OPENER = new Html(SCRIPT);
const STYLE_SOURCE = hashSourceOf(STYLE);
const SCRIPT_SOURCE = hashSourceOf(SCRIPT);

/** Content Security Policy Level 3, section 2.3.1. */
function hashSourceOf(text: string): string {
  return `'sha256-${createHash("sha256").update(text).digest("base64")}'`;
}

/** Prints a page as a whole document. */
export function documentFrom({ title, main, head, told }: Page): string {
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
${told !== undefined && html`<script data-origin="${told.origin}" data-message="${told.message}">${TELL_OPENER}</script>`}
</body>
</html>
`.text;
}

/** Fields of every answer to a browser, redirects too: addresses here hold what is somebody's own. */
const PRIVATE_FIELDS: Readonly<Record<string, string>> = {
  "cache-control": "no-store",
  "referrer-policy": "no-referrer",
  "x-content-type-options": "nosniff",
};

const POLICY = `default-src 'none'; style-src ${STYLE_SOURCE}; form-action 'self'; frame-ancestors 'none'; base-uri 'none'`;

/** Fields of every page: nothing runs in it, nothing is loaded, no other site may frame it or see where it was. */
const PAGE_FIELDS: Readonly<Record<string, string>> = {
  "content-type": "text/html; charset=utf-8",
  "content-security-policy": POLICY,
  "x-frame-options": "DENY",
  ...PRIVATE_FIELDS,
};

/** What else an answer of a page carries. */
interface SendOptions {
  /** Value of `Set-Cookie`; undefined for none. */
  readonly cookie?: string | undefined;
}

/** Answers with a page. */
export function sendPage(response: HttpResponse, statusCode: number, page: Page, { cookie }: SendOptions = {}): void {
  const body = Buffer.from(documentFrom(page));
  response.writeHead(statusCode, {
    ...PAGE_FIELDS,
    ...(page.told && { "content-security-policy": `${POLICY}; script-src ${SCRIPT_SOURCE}` }),
    ...cookieField(cookie),
    "content-length": String(body.length),
  });
  response.end(body);
}

/** Sends the browser on, with a GET (RFC 9110 section 15.4.4). */
export function sendRedirect(response: HttpResponse, location: string, { cookie }: SendOptions = {}): void {
  response.writeHead(303, { location, "content-length": "0", ...PRIVATE_FIELDS, ...cookieField(cookie) });
  response.end();
}

function cookieField(cookie: string | undefined): Readonly<Record<string, string>> {
  return cookie === undefined ? {} : { "set-cookie": cookie };
}

/** What happened, what it means for the person who reads it, and what it says to those who run the application. */
interface Message {
  readonly title: string;
  readonly advice: string;
  readonly detail: string | undefined;
}

const NOW_NOT: Omit<Message, "detail"> = {
  title: "This does not work right now",
  advice: "Nothing is wrong with your account. Wait a minute, then try again.",
};
const WRONG_ADDRESS: Omit<Message, "detail"> = {
  title: "This link does not work",
  advice: "Go back to the application that sent you here, and start again from there.",
};
const NOT_SET_UP: Omit<Message, "detail"> = {
  title: "This is not set up yet",
  advice: "You did nothing wrong. Tell the people who run the application that sent you here, and show them this page.",
};

const MESSAGES: Partial<Record<Reason, Omit<Message, "detail">>> = {
  CALL_FORMAT_ERROR: WRONG_ADDRESS,
  INVALID_PUBLIC_KEY: WRONG_ADDRESS,
  CALLER_NOT_ALLOWED: WRONG_ADDRESS,
  INVALID_PROVIDER: NOT_SET_UP,
  PROVIDER_MISCONFIGURED: NOT_SET_UP,
};

/** What a person is told of an error; one that is not ours says nothing of itself. */
export function messageFromError(error: unknown): Message {
  if (!(error instanceof RelayError)) return { ...NOW_NOT, detail: undefined };
  return { ...(MESSAGES[error.reason] ?? NOW_NOT), detail: error.message };
}

/** A page that only says something. Pure. */
export function messagePage({ title, advice, detail }: Message): Page {
  return {
    title,
    main: html`<h1>${title}</h1>
<p>${advice}</p>
${detail !== undefined && html`<p class="detail">${detail}</p>`}`,
  };
}

const OUTCOME_NOT_SET_UP = "The application is not set up correctly at the provider. Tell the people who run it.";

/** A map, since the code is the provider's and may be any word, `constructor` too. */
const WHY: ReadonlyMap<string, string> = new Map([
  ["access_denied", "You did not allow it, or your organisation does not let you. If that was a mistake, try again."],
  ["invalid_grant", "It took too long, or the provider changed its mind. Try again."],
  ["temporarily_unavailable", "The provider could not be reached. Try again in a minute."],
  ["server_error", "The provider has a problem. Try again in a minute."],
  ["invalid_scope", "The application asks for something that the provider does not offer. Tell the people who run it."],
  ["invalid_client", OUTCOME_NOT_SET_UP],
  ["unauthorized_client", OUTCOME_NOT_SET_UP],
]);

/** What a person is told when an attempt to connect has ended. Pure. */
export function messageFromOutcome({ displayName }: Pick<Provider, "displayName">, outcome: ConnectOutcome): Message {
  if (outcome.outcome === "success") {
    return { title: `${displayName} is connected`, advice: "You can close this window.", detail: undefined };
  }
  const advice = WHY.get(outcome.error) ?? "The provider answered with an error. Try again.";
  return { title: `${displayName} is not connected`, advice, detail: `Error: ${outcome.error}` };
}
