import type { Offer } from "../authorization/offers.js";
import type { Visit } from "../authorization/visit.js";
import type { Page } from "./document.js";
import { type Html, html } from "./html.js";
import type { Notice } from "./notice.js";

/** What the connect page shows. */
export interface ConnectPageInput {
  readonly visit: Visit & { readonly session: string };
  readonly offers: readonly Offer[];
  /** What has just happened; undefined when nothing has. */
  readonly notice: Notice | undefined;
}

/** The page on which a user connects and disconnects accounts. Pure. */
export function connectPage({ visit, offers, notice }: ConnectPageInput): Page {
  const { name } = visit.application;
  const heading = `Connect accounts to ${name}`;
  return {
    title: notice === undefined ? heading : `${notice.title}. ${heading}`,
    main: html`<h1>${heading}</h1>
${notice !== undefined && noticeFor(notice)}
${offers.length === 0 ? html`<p>${name} has nothing to connect yet.</p>` : listOf(visit, offers)}
${visit.redirectUri !== undefined && html`<p><a href="${visit.redirectUri}">Back to ${name}</a></p>`}`,
  };
}

function noticeFor({ title, advice, isGood }: Notice): Html {
  return html`<p class="${isGood ? "notice" : "notice bad"}" role="status"><strong>${title}.</strong>${advice !== "" && html` ${advice}`}</p>`;
}

function listOf({ application, session }: ConnectPageInput["visit"], offers: readonly Offer[]): Html {
  return html`<p>${application.name} can use the accounts that you connect here. Before an account is connected, its provider asks you to sign in and to agree. You can disconnect it at any time.</p>
<ul role="list">
${offers.map((offer) => itemFrom(offer, session))}
</ul>`;
}

function itemFrom(offer: Offer, session: string): Html {
  return html`<li>
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
