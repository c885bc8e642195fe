import { requireProvider } from "../authorization/connect-link.js";
import { startAuthorization } from "../authorization/start.js";
import { type LinkVisit, type Visit, withSession } from "../authorization/visit.js";
import { RelayError } from "../errors.js";
import { originParameterNames } from "../providers/origin-parameters.js";
import type { Provider } from "../providers/provider.js";
import type { PageExchange } from "./handler.js";
import { type PageQuery, parsePageQuery } from "./page-query.js";
import { parameterPage } from "./parameter-page.js";
import { sendPage, sendRedirect } from "./send.js";
import { requireListed, visitFor } from "./visit.js";

/** `GET /oauth/connect/{provider}`: sends the browser to the provider, or asks for what its address takes first. */
export async function answerStart(exchange: PageExchange, rawName: string): Promise<void> {
  const { options, response, browser, cookie } = exchange;
  const query = parsePageQuery(exchange.queryText);
  const visit = await visitFor(exchange, query, false);
  const provider = requireProvider(options, nameFrom(rawName));
  requireLinked(visit, provider);
  requireListed(visit, provider.name);
  const given = parametersFrom(visit, query, provider);
  const { application, userId, redirectUri, scope } = visit;
  const session = visit.isPage ? visit.session : undefined;
  const isAnswer = query.get("answer") !== undefined;
  const start = await startAuthorization(options, {
    ...{ application, userId, provider, browser, scope, redirectUri, session, isAnswer },
    originParameters: given,
  });
  if (start.kind === "redirect") return sendRedirect(response, start.uri, { cookie });
  const asked = await withSession(options, { ...visit, providers: [provider.name] });
  const page = parameterPage({ ...start, provider, given, session: asked.session });
  sendPage(response, start.problem === undefined ? 200 : 400, page, { cookie, formTargets: formTargetsOf(provider) });
}

function nameFrom(raw: string): string {
  try {
    return decodeURIComponent(raw);
  } catch {
    // No provider's name; the catalogue says so.
    return "";
  }
}

function requireLinked(visit: Visit | LinkVisit, { name }: Provider): void {
  if (!("providerName" in visit) || visit.providerName === undefined || visit.providerName === name) return;
  throw new RelayError("CALLER_NOT_ALLOWED", "This link is for another provider. Ask for a new one.");
}

/** What the link has counts before what the address says. */
function parametersFrom(visit: Visit | LinkVisit, query: PageQuery, provider: Provider): ReadonlyMap<string, string> {
  const given = query.pick(originParameterNames(provider));
  return "originParameters" in visit ? new Map([...given, ...Object.entries(visit.originParameters)]) : given;
}

/** The form's answer is a redirect to the provider, which Chromium holds against form-action as well. */
function formTargetsOf({ oauth2 }: Provider): readonly string[] {
  const [, host] = /^(https?:\/\/[^/?]+)/.exec(oauth2?.authorizationEndpoint ?? "") ?? [];
  if (host === undefined) return [];
  // CSP has one wildcard, in front; it stands for any number of labels.
  return [host.replace(/\/\/(?:\{[^}]*\}\.)+/, "//*.").replace(/\/\/\{[^}]*\}$/, "//*")];
}
