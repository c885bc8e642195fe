import { DRAIN_FACTOR, type HttpRequest } from "../http/exchange.js";
import { createChunks } from "../lib/chunks.js";
import { formatError, RelayError } from "../model/errors.js";
import { finishAuthorization, redirectUriWith } from "../oauth/callback.js";
import { CONNECT_PATH, requireProvider } from "../oauth/connect-link.js";
import { disconnect } from "../oauth/disconnect.js";
import { startAuthorization } from "../oauth/start.js";
import { type LinkVisit, offersFor, type Visit, visitFromSession, withSession } from "../oauth/visit.js";
import { originParameterNames } from "../providers/origin.js";
import type { Provider } from "../providers/provider.js";
import { connectPage, forwardPage, noticeFrom, parameterPage } from "./connect-page.js";
import { messageFromOutcome, messagePage, sendPage, sendRedirect } from "./document.js";
import { type PageExchange, type PageQuery, parsePageQuery, requireListed, requirePage, visitFor } from "./visit.js";

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
function pageUri(session: string, happened: Readonly<Record<string, string>> = {}): string {
  return `${CONNECT_PATH}?${new URLSearchParams({ session, ...happened })}`;
}

/** Of the connect page's form, many times over. */
const MAX_FORM_BYTES = 16 * 1024;

/** Reads a urlencoded form. Rejects with RelayError REQUEST_TOO_LARGE, or CALL_FORMAT_ERROR when it is none or cut short. */
async function readForm(request: HttpRequest): Promise<string> {
  if (/^application\/x-www-form-urlencoded\b/i.test(request.headers["content-type"] ?? "")) return readText(request);
  throw formatError("The request is not a form. Use the page's own buttons.");
}

/** What is too much is read on for a while and thrown away, so that the browser gets to see the answer. */
function readText(request: HttpRequest): Promise<string> {
  return new Promise((resolve, reject) => {
    const chunks = createChunks();
    let length = 0;
    request.on("data", (chunk: Buffer) => {
      length += chunk.length;
      if (length <= MAX_FORM_BYTES) chunks.push(chunk);
      else if (length > MAX_FORM_BYTES * DRAIN_FACTOR) request.destroy();
    });
    request.on("end", () => {
      if (length <= MAX_FORM_BYTES) resolve(chunks.concat().toString());
      else reject(new RelayError("REQUEST_TOO_LARGE", "The form is too large."));
    });
    const cutShort = () => reject(formatError("The form ended before it was complete. Send it again."));
    request.on("error", cutShort);
    request.on("close", cutShort);
  });
}

/** `GET /oauth/callback`: where providers send the browser back to. It goes on to where it came from. */
export async function answerCallback({ options, response, browser, queryText }: PageExchange): Promise<void> {
  const result = await finishAuthorization(options, new URLSearchParams(queryText), browser);
  const { provider, outcome, redirectUri, session } = result;
  if (session !== undefined) return sendRedirect(response, pageUri(session, { provider: provider.name, ...outcome }));
  if (redirectUri !== undefined) return sendRedirect(response, redirectUriWith(redirectUri, provider.name, outcome));
  const status = outcome.outcome === "success" ? 200 : 400;
  sendPage(response, status, messagePage(messageFromOutcome(provider, outcome)));
}

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
