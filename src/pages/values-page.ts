import type { Question } from "../oauth/start.js";
import { patternTextOf } from "../providers/connection-value.js";
import { type ConnectionValue, hasOwnPage, KEY_VALUES, type Provider } from "../providers/provider.js";
import { userMark } from "./connect-page.js";
import type { Mark, Page } from "./document.js";
import { type Html, html, visibleText } from "./html.js";
import type { Texts } from "./texts/texts.js";

/** Who connects which provider. */
interface Connecting {
  readonly provider: Pick<Provider, "name" | "displayName" | "origins" | "kind" | "oauth1" | "oauth2">;
  readonly mark: Mark;
  readonly userId: string;
  readonly session: string;
  /** Values that the user entered before, or that the address contains. */
  readonly given: ReadonlyMap<string, string>;
  readonly texts: Texts;
}

/**
 * Confirmation page, shown before the provider when the browser has not seen a page of ours yet: says whose account is
 * about to be used by which application. Without it, a stranger's link would connect the account of whoever opens it,
 * since many providers do not ask again when a user has agreed before (RFC 9700 section 4.7.1, RFC 6819 section
 * 4.4.1.8). Continuing requires the session of this page. Pure.
 *
 * @param scopes the requested scopes, by the provider's own names.
 */
export function confirmPage(
  { provider, mark, userId, session, given, texts }: Connecting,
  scopes: readonly string[],
): Page {
  const { name, displayName } = provider;
  const heading = texts.confirm(displayName, mark.name);
  const query = new URLSearchParams({ session, ...Object.fromEntries(given) }).toString();
  return {
    title: heading,
    mark,
    main: html`<h1>${heading}</h1>
<p>${texts.confirmUser(userMark(userId), mark.name, displayName)}</p>
${scopes.length === 0 ? html`<p>${texts.asksAtProvider(displayName)}</p>` : scopeList(texts.asksFor(mark.name), scopes, provider)}
<p class="notice care">${texts.confirmOnlyIf(mark.name)}</p>
<p><a class="button main" href="/oauth/connect/${name}?${query}">${texts.continueTo(displayName)}</a></p>`,
  };
}

function scopeList(title: string, scopes: readonly string[], { oauth2 }: Connecting["provider"]): Html {
  return html`<p id="scopes">${title}</p>
<ul class="scopes" role="list" aria-labelledby="scopes">
${scopes.map((scope) => scopeItem(scope, oauth2?.scopeDescriptions ?? {}))}
</ul>`;
}

/** Descriptions are in English in every language of the page: a bare scope name would say less. */
function scopeItem(scope: string, descriptions: Readonly<Record<string, string>>): Html {
  const name = html`<code>${visibleText(scope)}</code>`;
  if (!Object.hasOwn(descriptions, scope)) return html`<li>${name}</li>`;
  return html`<li><span lang="en">${descriptions[scope]}</span> ${name}</li>`;
}

interface ValuesPageInput extends Connecting {
  readonly question: Question;
}

/**
 * Asks for the values of a connection: the address of the user's account, such as the name of a shop, or keys. Keys
 * never appear in an address, and are never shown again. Pure.
 */
export function valuesPage(input: ValuesPageInput): Page {
  const { provider, mark, userId, question, given, session, texts } = input;
  const { name, displayName } = provider;
  const heading = texts.connectProvider(displayName);
  const { values, problem } = question;
  const isEntered = !hasOwnPage(provider);
  const wrong = problem && problemFor(provider, values, problem, texts);
  return {
    title: wrong === undefined ? heading : `${wrong.title}. ${heading}`,
    mark,
    main: html`<h1>${heading}</h1>
${introFor(input, isEntered)}
<p>${texts.confirmUser(userMark(userId), mark.name, displayName)}</p>
${wrong?.notice}
<form method="${isEntered ? "post" : "get"}" action="/oauth/connect/${name}">
<input type="hidden" name="session" value="${session}"><input type="hidden" name="answer" value="1">
${values.map((value, at) => fieldFor(value, provider, { written: given.get(value.name), isFirst: at === 0, problem }, texts))}
<button class="button main">${isEntered ? texts.connectButton : texts.continueTo(displayName)}</button>
</form>
${!isEntered && html`<p class="hint">${texts.confirmOnlyIf(mark.name)}</p>`}`,
  };
}

/** @param isEntered whether the values are keys entered here, which the application can then use. */
function introFor(
  { provider: { displayName }, mark, question: { values }, texts }: ValuesPageInput,
  isEntered: boolean,
) {
  if (values.length === 0) return html`<p>${texts.nothingMore}</p>`;
  if (values.every(({ isHost }) => isHost)) return html`<p>${texts.whichAddress(displayName)}</p>`;
  const isKept = texts.isKept(displayName);
  if (!isEntered) return html`<p>${texts.asksForThis(displayName)} ${isKept}</p>`;
  const user = html`<strong>${mark.name}</strong>`;
  return html`<p>${texts.withThis(user, displayName)} ${isKept} ${texts.enterOnlyIf(mark.name)}</p>`;
}

/** The problem with the entered values: for the page title, and as a notice. */
function problemFor(
  { displayName }: Connecting["provider"],
  values: readonly ConnectionValue[],
  { parameter, problem }: NonNullable<Question["problem"]>,
  texts: Texts,
): { readonly title: string; readonly notice: Html } {
  const value = values.find(({ name }) => name === parameter);
  if (value === undefined || value.isHost) {
    const { title, advice } = texts.notAnAddress(displayName);
    return { title: texts.noSuchAddress, notice: problemNotice(title, html`${advice}`) };
  }
  const told = problem.startsWith("is missing") ? "is missing" : problem;
  const title = texts.cannotBeRight(labelOf(value, displayName));
  return { title, notice: problemNotice(title, html`<span lang="en">It ${told}.</span>`) };
}

function problemNotice(title: string, advice: Html): Html {
  return html`<p class="notice bad" role="alert" id="problem"><strong>${title}.</strong> ${advice}</p>`;
}

interface Field {
  /** What the user wrote; undefined for nothing. */
  readonly written: string | undefined;
  readonly isFirst: boolean;
  readonly problem: Question["problem"];
}

/** Label, help and choices come from the provider's definition, in English. */
function fieldFor(value: ConnectionValue, provider: Connecting["provider"], field: Field, texts: Texts): Html {
  const { name, help, isOptional, isHost, defaultValue, choices, keyFileMember } = value;
  const { displayName, kind } = provider;
  const isKey = kind === "jwt_bearer" && name === KEY_VALUES.key;
  const isWrong = field.problem !== undefined && (isHost || field.problem.parameter === name);
  const hint =
    help !== "" ? html`<span lang="en">${help}</span>` : isHost ? hostHint(provider, name, texts) : undefined;
  const text = field.written ?? defaultValue;
  const described = [...(hint === undefined ? [] : [`${name}-hint`]), ...(isWrong ? ["problem"] : [])].join(" ");
  const shared = html`id="${name}" name="${name}"${!isOptional && (isKey || keyFileMember === undefined) && html` required`}${described !== "" && html` aria-describedby="${described}"`}${isWrong && html` aria-invalid="true"`}${field.isFirst && html` autofocus`}`;
  const control =
    choices.length > 0
      ? html`<select ${shared} lang="en">
${isOptional && html`<option value=""></option>`}
${choices.map((choice) => html`<option value="${choice.value}"${choice.value === text && html` selected`}>${choice.label}</option>`)}
</select>`
      : isKey
        ? html`<textarea ${shared} rows="6" autocapitalize="none" autocomplete="off" spellcheck="false"></textarea>`
        : inputFor(value, shared, text);
  return html`<label for="${name}">${labelOf(value, displayName)}${isOptional && html` ${texts.optional}`}</label>
${hint !== undefined && html`<p class="hint" id="${name}-hint">${hint}</p>`}
${control}
`;
}

/** A secret has no `maxlength`: a browser would cut what is pasted, unseen, and the rest would be stored. */
function inputFor({ isSecret, isHost, pattern }: ConnectionValue, shared: Html, text: string): Html {
  return html`<input ${shared}${isSecret ? html` type="password"` : html` value="${text}" maxlength="${isHost ? "253" : "4096"}"`}${pattern !== undefined && html` pattern="${patternTextOf(pattern)}"`} autocapitalize="none" autocomplete="off" spellcheck="false">`;
}

function labelOf({ name, label }: ConnectionValue, displayName: string): string {
  return label === "" ? `${displayName} ${wordsOf(name)}` : label;
}

/** Shows which part of the account's address is asked for. */
function hostHint({ origins }: Connecting["provider"], name: string, texts: Texts): Html {
  const rule = origins.find((each) => each.kind === "template" && each.parameters.includes(name));
  const template = rule?.kind === "template" ? rule.template : "";
  const [before = "", after = ""] = template.split(`{${name}}`).map((part) => part.replace(/\{([^}]*)\}/g, "$1"));
  if (before === "https://" && after === "") return texts.wholeHost(html`<strong>example.com</strong>`);
  const part = html`<strong>${wordsOf(name)}</strong>`;
  return texts.partOfHost(part, html`${before}${part}${after}`);
}

function wordsOf(name: string): string {
  return name.replaceAll("_", " ");
}

/**
 * Sends the browser on after a form, to a provider or back to an application. It is a page with a refresh, not a
 * redirect: Chromium checks a form's whole redirect chain against `form-action`, and where a provider redirects next is
 * not known. Pure.
 *
 * @param name display name of the destination.
 */
export function forwardPage(name: string, uri: string, texts: Texts): Page {
  const title = texts.onTheWayTo(name);
  return {
    title,
    head: html`<meta http-equiv="refresh" content="0; url=${uri}">`,
    main: html`<h1>${title}</h1>
<p><a href="${uri}">${texts.continueTo(name)}</a></p>`,
  };
}
