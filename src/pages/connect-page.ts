import type { AuthorizationOptions } from "../oauth/authorization-server.js";
import type { ConnectSession, Offer } from "../oauth/connect-session.js";
import type { Question } from "../oauth/start.js";
import { MAX_SECRET_LENGTH, patternTextOf } from "../providers/connection-value.js";
import { type ConnectionValue, hasOwnPage, KEY_VALUES, type Provider } from "../providers/provider.js";
import { type Html, html, messageFromOutcome, type Page } from "./document.js";
import type { PageQuery } from "./page-request.js";

/** What the connect page shows. */
interface ConnectPageInput {
  readonly connectSession: ConnectSession & { readonly session: string };
  readonly offers: readonly Offer[];
  /** What has just happened; undefined when nothing has. */
  readonly notice: Notice | undefined;
  /** What the names of the listed providers hold, in any case; empty lists all. */
  readonly search: string;
}

/** A page with more accounts than fit a screen or two has a search, and groups. */
const MANY_OFFERS = 12;

/** The page on which a user connects and disconnects accounts. Pure. */
export function connectPage({ connectSession, offers, notice, search }: ConnectPageInput): Page {
  const { name } = connectSession.application;
  const heading = `Connect accounts to ${name}`;
  return {
    title: notice === undefined ? heading : `${notice.title}. ${heading}`,
    main: html`<h1>${heading}</h1>
${notice !== undefined && noticeFor(notice)}
${offers.length === 0 ? html`<p>${name} has nothing to connect yet.</p>` : listOf(connectSession, offers, search)}
${connectSession.redirectUri !== undefined && html`<p><a href="${connectSession.redirectUri}">Back to ${name}</a></p>`}`,
  };
}

function noticeFor({ title, advice, isGood }: Notice): Html {
  return html`<p class="${isGood ? "notice" : "notice bad"}" role="status"><strong>${title}.</strong>${advice !== "" && html` ${advice}`}</p>`;
}

function listOf(
  { application, session, providers }: ConnectPageInput["connectSession"],
  offers: readonly Offer[],
  search: string,
): Html {
  const isMany = offers.length > MANY_OFFERS;
  const found = isMany ? offers.filter((offer) => isFound(offer, search)) : offers;
  // A page that was opened for some providers keeps their order.
  const groups = isMany && search === "" && providers.length === 0 ? groupsOf(found) : undefined;
  return html`<p>${application.name} can use the accounts that you connect here. Before an account is connected, its provider asks you to sign in and to agree. You can disconnect it at any time.</p>
${isMany && searchForm(session, search)}
${found.length === 0 && html`<p role="status">No provider has this in its name.</p>`}
${groups === undefined ? itemsFrom(found, session) : groups.map(([title, members]) => html`<h2 class="group">${title}</h2>${itemsFrom(members, session)}`)}`;
}

function itemsFrom(offers: readonly Offer[], session: string): Html {
  return html`<ul role="list">
${offers.map((offer) => itemFrom(offer, session))}
</ul>`;
}

function searchForm(session: string, search: string): Html {
  return html`<form method="get" action="/oauth/connect" role="search">
<input type="hidden" name="session" value="${session}">
<label for="search">Find a provider</label>
<input id="search" name="search" type="search" value="${search}" maxlength="100" autocomplete="off" spellcheck="false">
<button class="button">Find</button>
</form>`;
}

function isFound({ provider: { name, displayName, aliases } }: Offer, search: string): boolean {
  const wanted = search.trim().toLowerCase();
  return [displayName, name, ...aliases].some((text) => text.toLowerCase().includes(wanted));
}

/** What the user has connected, and the rest by the first letter of its name, both in order. */
function groupsOf(offers: readonly Offer[]): ReadonlyArray<readonly [title: string, members: readonly Offer[]]> {
  const groups = new Map<string, Offer[]>();
  const add = (title: string, offer: Offer) => groups.set(title, [...(groups.get(title) ?? []), offer]);
  for (const offer of offers) if (offer.state !== undefined) add("Your accounts", offer);
  for (const offer of offers) if (offer.state === undefined) add(initialOf(offer), offer);
  return [...groups];
}

function initialOf({ provider: { displayName } }: Offer): string {
  return (/[\p{L}\p{N}]/u.exec(displayName)?.[0] ?? "#").toUpperCase();
}

function itemFrom(offer: Offer, session: string): Html {
  return html`<li>
<span class="initial" aria-hidden="true">${initialOf(offer)}</span>
<div><h2>${offer.provider.displayName}</h2>${stateOf(offer)}</div>
<div class="actions">
${offer.canConnect && connectLink(offer, session)}
${offer.state !== undefined && disconnectForm(offer, session)}
</div>
</li>
`;
}

/** What the eye sees beside each account, the ear hears in a list of links and buttons. */
function connectLink({ provider, state }: Offer, session: string): Html {
  const query = new URLSearchParams({ session }).toString();
  const look = state === "ACTIVE" ? "button" : "button main";
  const text =
    state === undefined
      ? html`Connect<span class="unseen"> ${provider.displayName}</span>`
      : html`Connect again<span class="unseen"> to ${provider.displayName}</span>`;
  return html`<a class="${look}" href="/oauth/connect/${provider.name}?${query}">${text}</a>`;
}

function disconnectForm({ provider }: Offer, session: string): Html {
  return html`<form method="post" action="/oauth/connect">
<input type="hidden" name="session" value="${session}"><input type="hidden" name="provider" value="${provider.name}">
<button class="button" name="action" value="disconnect">Disconnect<span class="unseen"> ${provider.displayName}</span></button>
</form>`;
}

function stateOf({ state, canConnect }: Offer): Html {
  if (state === undefined) return html`<p class="state">Not connected</p>`;
  if (state === "ACTIVE") return html`<p class="state good">Connected</p>`;
  return html`<p class="state care">No longer connected${canConnect && html`: connect again to go on using it`}</p>`;
}

/** What has just happened on the connect page, for a person. */
interface Notice {
  /** One sentence without its full stop. */
  readonly title: string;
  /** What it means, or what to do; may be empty. */
  readonly advice: string;
  /** Whether it is what the person wanted. */
  readonly isGood: boolean;
}

/** Reads it from the page's own address; undefined when that says nothing that is known. */
export function noticeFrom({ catalog }: Pick<AuthorizationOptions, "catalog">, query: PageQuery): Notice | undefined {
  const provider = catalog.find(query.get("provider") ?? "");
  if (provider === undefined) return undefined;
  const { displayName } = provider;
  switch (query.get("outcome")) {
    case "success":
      return { title: `${displayName} is connected`, advice: "", isGood: true };
    case "error": {
      const { title, advice } = messageFromOutcome(provider, { outcome: "error", error: query.get("error") ?? "" });
      return { title, advice, isGood: false };
    }
    case "disconnected":
      return { title: `${displayName} is disconnected`, advice: "", isGood: true };
    case "disconnected_here": {
      const advice = `${displayName} may still list the access that you gave. To end it there too, remove it in your ${displayName} account.`;
      return { title: `${displayName} is disconnected here`, advice, isGood: true };
    }
    default:
      return undefined;
  }
}

/** What the page asks for. */
interface ValuesPageInput {
  readonly provider: Pick<Provider, "name" | "displayName" | "origins" | "kind" | "oauth1">;
  readonly applicationName: string;
  readonly question: Question;
  /** What the user wrote before. */
  readonly given: ReadonlyMap<string, string>;
  readonly session: string;
}

/**
 * Asks for what stands with a connection: the address of the user's account, such as the name of a shop, or keys. Keys are in
 * no address and on no page again. Pure.
 */
export function valuesPage({ provider, applicationName, question, given, session }: ValuesPageInput): Page {
  const { name, displayName } = provider;
  const heading = `Connect ${displayName}`;
  const { values, problem } = question;
  const isEntered = !hasOwnPage(provider);
  const wrong = problem && problemFor(provider, values, problem);
  return {
    title: wrong === undefined ? heading : `${wrong.title}. ${heading}`,
    main: html`<h1>${heading}</h1>
${introFor(provider, values, isEntered ? applicationName : undefined)}
${wrong?.notice}
<form method="${isEntered ? "post" : "get"}" action="/oauth/connect/${name}">
<input type="hidden" name="session" value="${session}"><input type="hidden" name="answer" value="1">
${values.map((value, at) => fieldFor(value, provider, { written: given.get(value.name), isFirst: at === 0, problem }))}
<button class="button main">${isEntered ? "Connect" : `Continue to ${displayName}`}</button>
</form>`,
  };
}

/** @param user the application that gets to use what is entered; undefined where nothing secret is. */
function introFor(
  { displayName }: ValuesPageInput["provider"],
  values: readonly ConnectionValue[],
  user: string | undefined,
): Html {
  if (values.length === 0) return html`<p>There is nothing more to say to connect it.</p>`;
  if (values.every(({ isHost }) => isHost))
    return html`<p>Your ${displayName} account has an address of its own. Which one is it?</p>`;
  const isKept = html`It is kept encrypted, and sent to ${displayName} only.`;
  if (user === undefined) return html`<p>${displayName} asks for this to connect your account. ${isKept}</p>`;
  return html`<p>With this, <strong>${user}</strong> can use your ${displayName} account. ${isKept} Enter it only if you have come here from ${user}.</p>`;
}

/** What is wrong, as the title says it, and as the page does. */
function problemFor(
  { displayName }: ValuesPageInput["provider"],
  values: readonly ConnectionValue[],
  { parameter, problem }: NonNullable<Question["problem"]>,
): { readonly title: string; readonly notice: Html } {
  const value = values.find(({ name }) => name === parameter);
  if (value === undefined || value.isHost) {
    return {
      title: "No such address",
      notice: html`<p class="notice bad" role="alert" id="problem"><strong>This is not an address of ${displayName}.</strong> Open ${displayName} in another window, copy its address from the address bar, and paste it here.</p>`,
    };
  }
  const told = problem.startsWith("is missing") ? "is missing" : problem;
  const label = labelOf(value, displayName);
  return {
    title: `${label} cannot be right`,
    notice: html`<p class="notice bad" role="alert" id="problem"><strong>${label} cannot be right.</strong> It ${told}.</p>`,
  };
}

interface Field {
  /** Undefined when nothing was. */
  readonly written: string | undefined;
  readonly isFirst: boolean;
  readonly problem: Question["problem"];
}

function fieldFor(value: ConnectionValue, provider: ValuesPageInput["provider"], field: Field): Html {
  const { name, help, isOptional, isHost, defaultValue, choices, keyFileMember } = value;
  const { displayName, kind } = provider;
  const isKey = kind === "jwt_bearer" && name === KEY_VALUES.key;
  const isWrong = field.problem !== undefined && (isHost || field.problem.parameter === name);
  const hint = help !== "" ? html`${help}` : isHost ? hostHint(provider, name) : undefined;
  const text = field.written ?? defaultValue;
  const described = [...(hint === undefined ? [] : [`${name}-hint`]), ...(isWrong ? ["problem"] : [])].join(" ");
  const shared = html`id="${name}" name="${name}"${!isOptional && (isKey || keyFileMember === undefined) && html` required`}${described !== "" && html` aria-describedby="${described}"`}${isWrong && html` aria-invalid="true"`}${field.isFirst && html` autofocus`}`;
  const control =
    choices.length > 0
      ? html`<select ${shared}>
${isOptional && html`<option value=""></option>`}
${choices.map((choice) => html`<option value="${choice.value}"${choice.value === text && html` selected`}>${choice.label}</option>`)}
</select>`
      : isKey
        ? html`<textarea ${shared} rows="6" maxlength="${String(MAX_SECRET_LENGTH)}" autocapitalize="none" autocomplete="off" spellcheck="false"></textarea>`
        : inputFor(value, shared, text);
  return html`<label for="${name}">${labelOf(value, displayName)}${isOptional && html` (optional)`}</label>
${hint !== undefined && html`<p class="hint" id="${name}-hint">${hint}</p>`}
${control}
`;
}

function inputFor({ isSecret, isHost, pattern }: ConnectionValue, shared: Html, text: string): Html {
  return html`<input ${shared}${isSecret ? html` type="password"` : html` value="${text}"`} maxlength="${isHost ? "253" : "4096"}"${pattern !== undefined && html` pattern="${patternTextOf(pattern)}"`} autocapitalize="none" autocomplete="off" spellcheck="false">`;
}

function labelOf({ name, label }: ConnectionValue, displayName: string): string {
  return label === "" ? `${displayName} ${wordsOf(name)}` : label;
}

/** Shows where in the address the part is that is asked for. */
function hostHint({ origins }: ValuesPageInput["provider"], name: string): Html {
  const rule = origins.find((each) => each.kind === "template" && each.parameters.includes(name));
  const template = rule?.kind === "template" ? rule.template : "";
  const [before = "", after = ""] = template.split(`{${name}}`).map((part) => part.replace(/\{([^}]*)\}/g, "$1"));
  if (before === "https://" && after === "")
    return html`Such as <strong>example.com</strong>. You may paste the whole address.`;
  return html`What stands for <strong>${wordsOf(name)}</strong> in ${before}<strong>${wordsOf(name)}</strong>${after}. You may paste the whole address.`;
}

function wordsOf(name: string): string {
  return name.replaceAll("_", " ");
}

/**
 * Takes the browser on after a form, to a provider or back to an application. A redirect would not do: Chromium holds a form's whole chain of
 * redirects against `form-action`, and where a provider sends the browser next is not known. Pure.
 *
 * @param name where it goes, for people.
 */
export function forwardPage(name: string, uri: string): Page {
  const title = `On the way to ${name}`;
  return {
    title,
    head: html`<meta http-equiv="refresh" content="0; url=${uri}">`,
    main: html`<h1>${title}</h1>
<p><a href="${uri}">Continue to ${name}</a></p>`,
  };
}
