import { CONNECT_PATH, requireProvider } from "../authorization/connect-link.js";
import { disconnect } from "../authorization/disconnect.js";
import { offersFor } from "../authorization/offers.js";
import { visitFromSession, withSession } from "../authorization/visit.js";
import { formatError } from "../model/errors.js";
import { connectPage } from "./connect-page.js";
import { noticeFrom } from "./notice.js";
import { parsePageQuery } from "./page-query.js";
import { readForm } from "./read-form.js";
import { sendPage, sendRedirect } from "./send.js";
import type { PageExchange } from "./visit.js";
import { requireListed, requirePage, visitFor } from "./visit.js";

/** `GET /oauth/connect`: the page. A link is used up by opening it, so its page moves to an address that can be reloaded. */
export async function answerConnectPage(exchange: PageExchange): Promise<void> {
  const { options, response, cookie } = exchange;
  const query = parsePageQuery(exchange.queryText);
  const begun = await visitFor(exchange, query, true);
  requirePage(begun);
  const visit = await withSession(options, begun);
  if (query.get("link") !== undefined) return sendRedirect(response, pageUri(visit.session), { cookie });
  const offers = await offersFor(options, visit);
  // Only an address of ours tells what has happened; one from elsewhere could tell anything.
  const notice = begun.session === undefined ? undefined : noticeFrom(options, query);
  sendPage(response, 200, connectPage({ visit, offers, notice }), { cookie });
}

/** `POST /oauth/connect`: the page's one form, which ends a connection. */
export async function answerDisconnect(exchange: PageExchange): Promise<void> {
  const { options, request, response, browser } = exchange;
  const form = parsePageQuery(await readForm(request));
  if (form.get("action") !== "disconnect") throw formatError("action must be disconnect.");
  const visit = await visitFromSession(options, form.get("session") ?? "", browser);
  requirePage(visit);
  const { name: providerName } = requireProvider(options, form.get("provider") ?? "");
  requireListed(visit, providerName);
  const key = { applicationId: visit.application.id, userId: visit.userId, providerName };
  const revocation = await options.pending.track(disconnect(options, key));
  const outcome = revocation === "REVOKED" || revocation === undefined ? "disconnected" : "disconnected_here";
  sendRedirect(response, pageUri(visit.session ?? "", { provider: providerName, outcome }));
}

/** Address of an open page, with what has just happened. */
export function pageUri(session: string, happened: Readonly<Record<string, string>> = {}): string {
  return `${CONNECT_PATH}?${new URLSearchParams({ session, ...happened })}`;
}
