import { formatError } from "../model/errors.js";
import type { Provider } from "./provider.js";

/** Tokens that a placeholder can stand for. */
export interface PlaceholderTokens {
  readonly access_token: string;
  readonly id_token: string | undefined;
}

/** As written in a query, and as the URL standard encodes braces in a path. */
const PLACEHOLDER = /(?:\{\{|%7B%7B)(access_token|id_token)(?:\}\}|%7D%7D)/g;

/**
 * Refuses a path that names a token the connection does not have, before any token is opened.
 *
 * Throws CALL_FORMAT_ERROR.
 */
export function requirePlaceholders(path: string, provider: Provider, has: { readonly id_token: boolean }): void {
  fillPlaceholders(path, provider, { access_token: "", id_token: has.id_token ? "" : undefined });
}

/**
 * Replaces `{{access_token}}` and `{{id_token}}` in an allowed path, percent-encoded, where the provider's definition
 * lists them; anything else stays as it is. The origin was decided before and is out of reach.
 *
 * Throws CALL_FORMAT_ERROR when the connection has no id token.
 */
export function fillPlaceholders(path: string, provider: Provider, tokens: PlaceholderTokens): string {
  if (provider.urlPlaceholders.size === 0) return path;
  return path.replace(PLACEHOLDER, (placeholder, name: keyof PlaceholderTokens) => {
    if (!provider.urlPlaceholders.has(name)) return placeholder;
    const token = tokens[name];
    if (token === undefined) {
      throw formatError(`url holds {{${name}}}, but this connection has none; remove it.`);
    }
    return encodeURIComponent(token);
  });
}
