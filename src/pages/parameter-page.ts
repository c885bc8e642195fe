import type { Provider } from "../providers/provider.js";
import type { Page } from "./document.js";
import { type Html, html } from "./html.js";

/** What the page asks for. */
export interface ParameterPageInput {
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
  const title = `Connect ${provider.displayName}`;
  return {
    title,
    main: html`<h1>${title}</h1>
<p>${provider.displayName} gives each customer an address of its own. Which one is yours?</p>
${problem !== undefined && html`<p class="notice" role="alert" id="problem">This does not make an address of ${provider.displayName}. Write it as it stands in the address bar.</p>`}
<form method="get" action="/oauth/connect/${provider.name}">
<input type="hidden" name="session" value="${session}"><input type="hidden" name="answer" value="1">
${names.map((name) => fieldFor(name, provider, given.get(name) ?? "", problem !== undefined))}
<button class="button">Continue to ${provider.displayName}</button>
</form>`,
  };
}

function fieldFor(name: string, { origins }: ParameterPageInput["provider"], value: string, hasProblem: boolean): Html {
  const rule = origins.find((each) => each.kind === "template" && each.parameters.includes(name));
  const example = rule?.kind === "template" ? rule.template : "";
  const label = name.charAt(0).toUpperCase() + name.slice(1).replaceAll("_", " ");
  return html`<label for="${name}">${label}</label>
<p class="detail" id="${name}-hint">The part {${name}} of ${example}</p>
<input id="${name}" name="${name}" value="${value}" required maxlength="253" autocapitalize="none" autocomplete="off" spellcheck="false" aria-describedby="${name}-hint${hasProblem ? " problem" : ""}"${hasProblem && html` aria-invalid="true"`}>
`;
}
