import type { AuthorizationOptions } from "../authorization/options.js";
import { type LinkVisit, type Visit, visitFromLink, visitFromQuery, visitFromSession } from "../authorization/visit.js";
import type { HttpRequest, HttpResponse } from "../http/exchange.js";
import { RelayError } from "../model/errors.js";
import { type PageQuery, visitQueryFrom } from "./page-query.js";

/** One request of a browser. */
export interface PageExchange {
  readonly options: AuthorizationOptions;
  readonly request: HttpRequest;
  readonly response: HttpResponse;
  /** What stands behind the question mark. */
  readonly queryText: string;
  readonly address: string;
  /** The browser's cookie. */
  readonly browser: string;
  /** The field that gives it to the browser; undefined when the browser has it. */
  readonly cookie: string | undefined;
}

/**
 * Whose browser this is, by what its address carries: an open page's session, a link, or the proof of a call.
 *
 * @param isPage whether an address with a proof opens the connect page.
 */
export async function visitFor(exchange: PageExchange, query: PageQuery, isPage: boolean): Promise<Visit | LinkVisit> {
  const { options, browser, address } = exchange;
  const session = query.get("session");
  if (session !== undefined) return visitFromSession(options, session, browser);
  const link = query.get("link");
  if (link !== undefined) return visitFromLink(options, link, browser);
  return visitFromQuery(options, visitQueryFrom(query, address, isPage), browser);
}

/** Throws RelayError CALLER_NOT_ALLOWED when the visit is for connecting one provider, without the page. */
export function requirePage({ isPage }: Pick<Visit, "isPage">): void {
  if (isPage) return;
  throw new RelayError("CALLER_NOT_ALLOWED", "This address is for connecting one provider only. Start again.");
}

/** Throws RelayError CALLER_NOT_ALLOWED when the visit is for other providers. */
export function requireListed({ providers }: Pick<Visit, "providers">, name: string): void {
  if (providers.length === 0 || providers.includes(name)) return;
  throw new RelayError("CALLER_NOT_ALLOWED", "This page was not opened for this provider. Start again.");
}
