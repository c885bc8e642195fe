import { requireProvider } from "../oauth/connect-link.js";
import { startAuthorization } from "../oauth/start.js";
import { type LinkVisit, type Visit, withSession } from "../oauth/visit.js";
import { originParameterNames } from "../providers/origin.js";
import type { Provider } from "../providers/provider.js";
import { type PageQuery, parsePageQuery } from "./page-query.js";
import { forwardPage, parameterPage } from "./parameter-page.js";
import { sendPage, sendRedirect } from "./send.js";
import { type PageExchange, requireListed, visitFor } from "./visit.js";

/** `GET /oauth/connect/{provider}`: sends the browser to the provider, or asks for what its address takes first. */
export async function answerStart(exchange: PageExchange, rawName: string): Promise<void> {
  const { options, response, browser, cookie } = exchange;
  const query = parsePageQuery(exchange.queryText);
  const visit = await visitFor(exchange, query, false);
  const provider = requireProvider(options, nameFrom(rawName));
  requireListed(visit, provider.name);
  const given = parametersFrom(visit, query, provider);
  const { application, userId, redirectUri, scope } = visit;
  const session = visit.isPage ? visit.session : undefined;
  const isAnswer = query.get("answer") !== undefined;
  const start = await startAuthorization(options, {
    ...{ application, userId, provider, browser, scope, redirectUri, session, isAnswer },
    originParameters: given,
  });
  if (start.kind === "redirect") {
    if (isAnswer) return sendPage(response, 200, forwardPage(provider, start.uri), { cookie });
    return sendRedirect(response, start.uri, { cookie });
  }
  const asked = await withSession(options, { ...visit, providers: [provider.name] });
  const page = parameterPage({ ...start, provider, given, session: asked.session });
  sendPage(response, start.problem === undefined ? 200 : 400, page, { cookie });
}

function nameFrom(raw: string): string {
  try {
    return decodeURIComponent(raw);
  } catch {
    // No provider's name; the catalogue says so.
    return "";
  }
}

/** What the link has counts before what the address says. */
function parametersFrom(visit: Visit | LinkVisit, query: PageQuery, provider: Provider): ReadonlyMap<string, string> {
  const given = query.pick(originParameterNames(provider));
  return "originParameters" in visit ? new Map([...given, ...Object.entries(visit.originParameters)]) : given;
}
