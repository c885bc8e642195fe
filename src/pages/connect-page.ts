import type { AuthorizationOptions } from "../oauth/authorization-server.js";
import type { ConnectSession, Offer } from "../oauth/connect-session.js";
import type { Provider } from "../providers/provider.js";
import { type Html, html, messageFromOutcome, type Page } from "./document.js";
import type { PageQuery } from "./page-request.js";

/** What the connect page shows. */
interface ConnectPageInput {
  readonly connectSession: ConnectSession & { readonly session: string };
  readonly offers: readonly Offer[];
  /** What has just happened; undefined when nothing has. */
  readonly notice: Notice | undefined;
}

/** The page on which a user connects and disconnects accounts. Pure. */
export function connectPage({ connectSession, offers, notice }: ConnectPageInput): Page {
  const { name } = connectSession.application;
  const heading = `Connect accounts to ${name}`;
  return {
    title: notice === undefined ? heading : `${notice.title}. ${heading}`,
    main: html`<h1>${heading}</h1>
${notice !== undefined && noticeFor(notice)}
${offers.length === 0 ? html`<p>${name} has nothing to connect yet.</p>` : listOf(connectSession, offers)}
${connectSession.redirectUri !== undefined && html`<p><a href="${connectSession.redirectUri}">Back to ${name}</a></p>`}`,
  };
}

function noticeFor({ title, advice, isGood }: Notice): Html {
  return html`<p class="${isGood ? "notice" : "notice bad"}" role="status"><strong>${title}.</strong>${advice !== "" && html` ${advice}`}</p>`;
}

function listOf({ application, session }: ConnectPageInput["connectSession"], offers: readonly Offer[]): Html {
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
interface ParameterPageInput {
  readonly provider: Pick<Provider, "name" | "displayName" | "origins">;
  /** Parameters of the provider's origin, in order. */
  readonly names: readonly string[];
  /** What the user wrote before. */
  readonly given: ReadonlyMap<string, string>;
  /** What is wrong with that; undefined for nothing. */
  readonly problem: string | undefined;
  readonly session: string;
}

/** Asks for what makes up the address of the user's account, such as the name of a shop. Pure. */
export function parameterPage({ provider, names, given, problem, session }: ParameterPageInput): Page {
  const { name, displayName } = provider;
  const heading = `Connect ${displayName}`;
  const hasProblem = problem !== undefined;
  return {
    title: hasProblem ? `No such address. ${heading}` : heading,
    main: html`<h1>${heading}</h1>
<p>Your ${displayName} account has an address of its own. Which one is it?</p>
${hasProblem && problemFor(displayName)}
<form method="get" action="/oauth/connect/${name}">
<input type="hidden" name="session" value="${session}"><input type="hidden" name="answer" value="1">
${names.map((each, at) => fieldFor(each, provider, { value: given.get(each) ?? "", isFirst: at === 0, hasProblem }))}
<button class="button main">Continue to ${displayName}</button>
</form>`,
  };
}

function problemFor(displayName: string): Html {
  return html`<p class="notice bad" role="alert" id="problem"><strong>This is not an address of ${displayName}.</strong> Open ${displayName} in another window, copy its address from the address bar, and paste it here.</p>`;
}

interface Field {
  readonly value: string;
  readonly isFirst: boolean;
  readonly hasProblem: boolean;
}

function fieldFor(
  name: string,
  { displayName, origins }: ParameterPageInput["provider"],
  { value, isFirst, hasProblem }: Field,
): Html {
  const rule = origins.find((each) => each.kind === "template" && each.parameters.includes(name));
  const template = rule?.kind === "template" ? rule.template : "";
  return html`<label for="${name}">${displayName} ${wordsOf(name)}</label>
<p class="hint" id="${name}-hint">${hintFrom(template, name)}</p>
<input id="${name}" name="${name}" value="${value}" required maxlength="253" autocapitalize="none" autocomplete="off" spellcheck="false" aria-describedby="${name}-hint${hasProblem ? " problem" : ""}"${hasProblem && html` aria-invalid="true"`}${isFirst && html` autofocus`}>
`;
}

/** Shows where in the address the part is that is asked for. */
function hintFrom(template: string, name: string): Html {
  const [before = "", after = ""] = template.split(`{${name}}`).map((part) => part.replace(/\{([^}]*)\}/g, "$1"));
  if (before === "https://" && after === "")
    return html`Such as <strong>example.com</strong>. You may paste the whole address.`;
  return html`What stands for <strong>${wordsOf(name)}</strong> in ${before}<strong>${wordsOf(name)}</strong>${after}. You may paste the whole address.`;
}

function wordsOf(name: string): string {
  return name.replaceAll("_", " ");
}

/**
 * Takes the browser on to the provider after a form. A redirect would not do: Chromium holds a form's whole chain of
 * redirects against `form-action`, and where a provider sends the browser next is not known. Pure.
 *
 * @param uri the authorization request.
 */
export function forwardPage({ displayName }: Pick<Provider, "displayName">, uri: string): Page {
  const title = `On the way to ${displayName}`;
  return {
    title,
    head: html`<meta http-equiv="refresh" content="0; url=${uri}">`,
    main: html`<h1>${title}</h1>
<p><a href="${uri}">Continue to ${displayName}</a></p>`,
  };
}
