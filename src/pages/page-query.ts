import { formatError, RelayError } from "../model/errors.js";
import { MAX_PROVIDERS } from "../oauth/connect-link.js";
import type { VisitQuery } from "../oauth/visit.js";
import type { Provider } from "../providers/provider.js";
import { type Html, html, type Page } from "./document.js";

const MAX_VALUE_LENGTH = 4096;

/** Parameters of a page's address or form, each at most once. */
export interface PageQuery {
  /** Undefined when it is missing or empty. Throws RelayError CALL_FORMAT_ERROR when it stands twice, is too long or no UTF-8. */
  get(name: string): string | undefined;
  /** Those among `names` that are there. */
  pick(names: readonly string[]): ReadonlyMap<string, string>;
}

/**
 * Reads a query or a form. A private key in it is refused: a browser's history and every log on the way would have it.
 * Throws RelayError CALL_FORMAT_ERROR or CALLER_NOT_ALLOWED.
 */
export function parsePageQuery(text: string): PageQuery {
  // Whatever a client sends as bytes that are no ASCII, nobody knows in which charset.
  if (/[^\x21-\x7e]/.test(text)) throw formatError("The address holds characters that must be percent-encoded.");
  const parameters = new URLSearchParams(text);
  if (parameters.getAll("private_key").some((value) => value !== "")) throw privateKeyShown();
  const get = (name: string): string | undefined => {
    const values = parameters.getAll(name);
    if (values.length > 1) throw formatError(`${name} is given more than once. Send it once.`);
    const [value = ""] = values;
    // What bytes that are no UTF-8 become: two different ids would be the same.
    if (value.includes("\ufffd")) throw formatError(`${name} is not correctly percent-encoded. Encode it as UTF-8.`);
    if (value.length > MAX_VALUE_LENGTH) throw formatError(`${name} is longer than ${MAX_VALUE_LENGTH} characters.`);
    return value === "" ? undefined : value;
  };
  return {
    get,
    pick: (names) =>
      new Map(
        names.flatMap((name) => {
          const value = get(name);
          return value === undefined ? [] : [[name, value] as const];
        }),
      ),
  };
}

/** What an application's own address says of the visit. Throws RelayError CALL_FORMAT_ERROR. */
export function visitQueryFrom(query: PageQuery, address: string, isPage: boolean): VisitQuery {
  return {
    publicKey: query.get("public_key") ?? "",
    userId: query.get("user_id") ?? "",
    // A browser that is sent here names no origin; one that does is not what this page is for.
    proof: { privateKeys: [], userSignature: query.get("user_signature"), origin: undefined, address },
    providers: providersFrom(query.get("providers")),
    redirectUri: query.get("redirect_uri"),
    scope: query.get("scope"),
    isPage,
  };
}

function providersFrom(text = ""): readonly string[] {
  const names = text.split(",").map((name) => name.trim());
  if (names.length > MAX_PROVIDERS) throw formatError(`providers names more than ${MAX_PROVIDERS}.`);
  return names.filter((name) => name !== "");
}

function privateKeyShown(): RelayError {
  return new RelayError(
    "CALLER_NOT_ALLOWED",
    "A private key must not be in a browser. Make a connect link with it (POST /oauth/connect-links) and send the browser there.",
  );
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
