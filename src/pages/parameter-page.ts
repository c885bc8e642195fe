import type { Provider } from "../providers/provider.js";
import { type Html, html, type Page } from "./document.js";

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
  return html`<p class="notice bad" role="alert" id="problem"><strong>This is no address of ${displayName}.</strong> Open ${displayName} in another window, copy what stands in the address bar, and paste it here.</p>`;
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
<p><a href="${uri}">Go on to ${displayName}</a></p>`,
  };
}
