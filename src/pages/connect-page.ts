import type { AuthorizationOptions } from "../oauth/authorization-server.js";
import type { ConnectSession, Offer } from "../oauth/connect-session.js";
import { initialOf, type Mark, messageFromOutcome, type Page } from "./document.js";
import { type Html, html, visibleText } from "./html.js";
import type { PageQuery } from "./page-request.js";
import type { Texts, Told } from "./texts/texts.js";

/** Input of {@link connectPage}. */
interface ConnectPageInput {
  readonly connectSession: ConnectSession & { readonly session: string };
  readonly mark: Mark;
  readonly offers: readonly Offer[];
  /** What has just happened; undefined for nothing. */
  readonly notice: Notice | undefined;
  /** Lists only providers whose name contains this text, ignoring case; empty lists all. */
  readonly search: string;
  readonly texts: Texts;
}

/** Above this number, which fills a screen or two, the page has a search and groups. */
const MANY_OFFERS = 12;

/** The page on which a user connects and disconnects accounts. Pure. */
export function connectPage(input: ConnectPageInput): Page {
  const { connectSession, mark, offers, notice, texts } = input;
  const { application, redirectUri } = connectSession;
  const heading = texts.connectTo(application.name);
  return {
    title: notice === undefined ? heading : `${notice.title}. ${heading}`,
    mark,
    main: html`<h1>${heading}</h1>
${notice !== undefined && noticeFor(notice)}
${offers.length === 0 ? html`<p>${texts.nothingToConnect(application.name)}</p>` : listOf(input)}
${redirectUri !== undefined && html`<p><a href="${redirectUri}">${texts.backTo(application.name)}</a></p>`}`,
  };
}

function noticeFor({ title, advice, isGood }: Notice): Html {
  return html`<p class="${isGood ? "notice" : "notice bad"}" role="status"><strong>${title}.</strong>${advice !== "" && html` ${advice}`}</p>`;
}

function listOf({ connectSession, offers, search, texts }: ConnectPageInput): Html {
  const { application, session, userId, providers } = connectSession;
  const isMany = offers.length > MANY_OFFERS;
  const found = isMany ? offers.filter((offer) => isFound(offer, search)) : offers;
  // A page opened for certain providers keeps their order.
  const groups = isMany && search === "" && providers.length === 0 ? groupsOf(found, texts) : undefined;
  const items = (of: readonly Offer[]) => html`<ul role="list">
${of.map((offer) => itemFrom(offer, session, texts))}
</ul>`;
  return html`<p>${texts.mayUse(application.name)}</p>
<p>${texts.forUser(userMark(userId), application.name)}</p>
${isMany && searchForm(session, search, texts)}
${found.length === 0 && html`<p role="status">${texts.noneFound}</p>`}
${groups === undefined ? items(found) : groups.map(([title, members]) => html`<h2 class="group">${title}</h2>${items(members)}`)}`;
}

/** A user id may contain any characters; none of them may reorder or hide the text around it. */
export function userMark(userId: string): Html {
  return html`<strong><bdi>${visibleText(userId)}</bdi></strong>`;
}

function searchForm(session: string, search: string, { find, findProvider }: Texts): Html {
  return html`<form method="get" action="/oauth/connect" role="search">
<input type="hidden" name="session" value="${session}">
<label for="search">${findProvider}</label>
<input id="search" name="search" type="search" value="${search}" maxlength="100" autocomplete="off" spellcheck="false">
<button class="button">${find}</button>
</form>`;
}

function isFound({ provider: { name, displayName, aliases } }: Offer, search: string): boolean {
  const wanted = search.trim().toLowerCase();
  return [displayName, name, ...aliases].some((text) => text.toLowerCase().includes(wanted));
}

/** Groups: first the user's connected accounts, then the rest by the first letter of the name; the order is kept. */
function groupsOf(
  offers: readonly Offer[],
  { yourAccounts }: Texts,
): ReadonlyArray<readonly [title: string, members: readonly Offer[]]> {
  const groups = new Map<string, Offer[]>();
  const add = (title: string, offer: Offer) => groups.set(title, [...(groups.get(title) ?? []), offer]);
  for (const offer of offers) if (offer.state !== undefined) add(yourAccounts, offer);
  for (const offer of offers) if (offer.state === undefined) add(initialOf(offer.provider.displayName), offer);
  return [...groups];
}

function itemFrom(offer: Offer, session: string, texts: Texts): Html {
  const { provider, state, canConnect } = offer;
  return html`<li>
<span class="initial" aria-hidden="true">${initialOf(provider.displayName)}</span>
<div><h2>${provider.displayName}</h2>${stateOf(offer, texts)}</div>
<div class="actions">
${canConnect && connectLink(offer, session, texts)}
${state !== undefined && disconnectForm(offer, session, texts)}
</div>
</li>
`;
}

/** The link text names the provider for screen readers, which may list links and buttons out of context. */
function connectLink({ provider, state }: Offer, session: string, { connect, connectAgain }: Texts): Html {
  const query = new URLSearchParams({ session }).toString();
  const look = state === "ACTIVE" ? "button" : "button main";
  const text = spoken((state === undefined ? connect : connectAgain)(provider.displayName));
  return html`<a class="${look}" href="/oauth/connect/${provider.name}?${query}">${text}</a>`;
}

function disconnectForm({ provider }: Offer, session: string, { disconnect }: Texts): Html {
  return html`<form method="post" action="/oauth/connect">
<input type="hidden" name="session" value="${session}"><input type="hidden" name="provider" value="${provider.name}">
<button class="button" name="action" value="disconnect">${spoken(disconnect(provider.displayName))}</button>
</form>`;
}

function spoken([seen, unseen]: readonly [string, string]): Html {
  return html`${seen}<span class="unseen">${unseen}</span>`;
}

function stateOf({ state, canConnect }: Offer, texts: Texts): Html {
  if (state === undefined) return html`<p class="state">${texts.notConnected}</p>`;
  if (state === "ACTIVE") return html`<p class="state good">${texts.connected}</p>`;
  return html`<p class="state care">${canConnect ? texts.endedConnectAgain : texts.ended}</p>`;
}

/** Notice about what has just happened on the connect page. */
interface Notice extends Told {
  /** Whether it is what the user wanted. */
  readonly isGood: boolean;
}

/** Reads the notice from the page's own address; undefined if there is none or it is not a known one. */
export function noticeFrom(
  { catalog }: Pick<AuthorizationOptions, "catalog">,
  query: PageQuery,
  texts: Texts,
): Notice | undefined {
  const provider = catalog.find(query.get("provider") ?? "");
  if (provider === undefined) return undefined;
  const { displayName } = provider;
  switch (query.get("outcome")) {
    case "success":
      return { title: texts.isConnected(displayName), advice: "", isGood: true };
    case "error": {
      const outcome = { outcome: "error", error: query.get("error") ?? "" } as const;
      const { title, advice } = messageFromOutcome(provider, outcome, texts);
      return { title, advice, isGood: false };
    }
    case "disconnected":
      return { title: texts.isDisconnected(displayName), advice: "", isGood: true };
    case "disconnected_here":
      return { ...texts.isDisconnectedHere(displayName), isGood: true };
    default:
      return undefined;
  }
}
