import type { Provider } from "../providers/provider.js";
import type { Page } from "./document.js";
import { html } from "./html.js";

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
