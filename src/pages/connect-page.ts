import type { Offer } from "../authorization/offers.js";
import type { Visit } from "../authorization/visit.js";
import type { Page } from "./document.js";
import { type Html, html } from "./html.js";

/** What the connect page shows. */
export interface ConnectPageInput {
  readonly visit: Visit & { readonly session: string };
  readonly offers: readonly Offer[];
  /** What has just happened, for a person; undefined when nothing has. */
  readonly notice: string | undefined;
}

/** The page on which a user connects and disconnects accounts. Pure. */
export function connectPage({ visit, offers, notice }: ConnectPageInput): Page {
  const title = `Connected accounts for ${visit.application.name}`;
  return {
    title,
    main: html`<h1>${title}</h1>
${notice !== undefined && html`<p class="notice" role="status">${notice}</p>`}
${offers.length === 0 ? html`<p>There is nothing to connect here yet.</p>` : listOf(visit, offers)}
${visit.redirectUri !== undefined && html`<p><a href="${visit.redirectUri}">Back to ${visit.application.name}</a></p>`}`,
  };
}

function listOf({ session }: ConnectPageInput["visit"], offers: readonly Offer[]): Html {
  return html`<p>${introduction(offers)}</p>
<ul>
${offers.map((offer) => itemFrom(offer, session))}
</ul>`;
}

function introduction(offers: readonly Offer[]): string {
  const connected = offers.filter(({ state }) => state === "ACTIVE").length;
  return `${connected} of ${offers.length} connected. Connecting takes you to the provider, which asks you first.`;
}

function itemFrom(offer: Offer, session: string): Html {
  const { name, displayName } = offer.provider;
  return html`<li>
<div><h2>${displayName}</h2><p>${stateOf(offer)}</p></div>
<div class="actions">
${offer.canConnect && connectLink(offer, session)}
${
  offer.state !== undefined &&
  html`<form method="post" action="/oauth/connect">
<input type="hidden" name="session" value="${session}"><input type="hidden" name="provider" value="${name}">
<button class="button" name="action" value="disconnect">Disconnect ${displayName}</button>
</form>`
}
</div>
</li>
`;
}

function connectLink({ provider, state }: Offer, session: string): Html {
  const query = new URLSearchParams({ session }).toString();
  const verb = state === undefined ? "Connect" : "Connect again:";
  return html`<a class="button" href="/oauth/connect/${provider.name}?${query}">${verb} ${provider.displayName}</a>`;
}

function stateOf({ state }: Offer): string {
  if (state === undefined) return "Not connected";
  return state === "ACTIVE" ? "Connected" : "Has to be connected again";
}
