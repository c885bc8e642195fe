import type { PathHandler } from "../http/dispatch.js";
import { answerPlain, clientNetworkOf, type HttpRequest, type HttpResponse } from "../http/exchange.js";
import { decodePercent } from "../lib/parse-url.js";
import { formatError, RelayError, rateLimited } from "../model/errors.js";
import type { AuthorizationOptions } from "../oauth/authorization-server.js";
import { CALLBACK_PATH, type CallbackResult, finishAuthorization, redirectUriWith } from "../oauth/callback.js";
import {
  CONNECT_PATH,
  type ConnectSession,
  connectSessionFromSecret,
  offersFor,
  requireLink,
  withSession,
} from "../oauth/connect-session.js";
import { disconnect } from "../oauth/disconnect.js";
import { connectByValues } from "../oauth/enter-values.js";
import { type Question, startAuthorization } from "../oauth/start.js";
import { requireProvider } from "../providers/catalog.js";
import { MAX_SECRET_LENGTH, type ValueTexts, valuesOf } from "../providers/connection-value.js";
import { hasOwnPage, type Provider } from "../providers/provider.js";
import { connectPage, noticeFrom } from "./connect-page.js";
import {
  connectMessage,
  type Mark,
  messageFromError,
  messageFromOutcome,
  messagePage,
  sendPage,
  sendRedirect,
} from "./document.js";
import {
  browserOf,
  connectSessionFor,
  MAX_KEYS_FORM_BYTES,
  type PageExchange,
  parsePageQuery,
  readForm,
  requireListed,
  requirePage,
} from "./page-request.js";
import { textsFor } from "./texts/language.js";
import { confirmPage, forwardPage, valuesPage } from "./values-page.js";

/** `GET /oauth/connect`: the connect page. A link opens only once, so it redirects to a reloadable address. */
async function answerConnectPage(exchange: PageExchange): Promise<void> {
  const { options, response, cookie, texts } = exchange;
  const query = parsePageQuery(exchange.queryText);
  const begun = await connectSessionFor(exchange, query, true);
  requirePage(begun);
  const connectSession = await withSession(options, begun);
  if (query.get("link") !== undefined) return sendRedirect(response, pageUri(connectSession.session), { cookie });
  const offers = await offersFor(options, connectSession);
  // Trust a notice in the address only with a session of ours: any other address could claim anything.
  const notice = begun.session === undefined ? undefined : noticeFrom(options, query, texts);
  const search = query.get("search") ?? "";
  const mark = await markFor(options, connectSession);
  sendPage(response, 200, connectPage({ connectSession, mark, offers, notice, search, texts }), { cookie, texts });
}

/** `POST /oauth/connect`: the disconnect form of the page. */
async function answerDisconnect(exchange: PageExchange): Promise<void> {
  const { options, response, browser } = exchange;
  const form = parsePageQuery(await readForm(exchange));
  if (form.get("action") !== "disconnect") throw formatError("action must be disconnect.");
  const connectSession = await connectSessionFromSecret(options, form.get("session") ?? "", browser);
  requirePage(connectSession);
  const { name: providerName } = requireProvider(options, form.get("provider") ?? "");
  requireListed(connectSession, providerName);
  const key = { applicationId: connectSession.application.id, userId: connectSession.userId, providerName };
  const revocation = await options.pending.track(disconnect(options, key));
  const outcome = revocation === "REVOKED" || revocation === undefined ? "disconnected" : "disconnected_here";
  sendRedirect(response, pageUri(connectSession.session ?? "", { provider: providerName, outcome }));
}

/** Address of an open page, with the outcome of the last action. */
function pageUri(session: string, happened: Readonly<Record<string, string>> = {}): string {
  return `${CONNECT_PATH}?${new URLSearchParams({ session, ...happened })}`;
}

/** `GET /oauth/callback`: providers redirect the browser here; it is then sent back to where it came from. */
async function answerCallback(exchange: PageExchange): Promise<void> {
  const { options, browser, queryText } = exchange;
  sendOutcome(exchange, await finishAuthorization(options, new URLSearchParams(queryText), browser));
}

/** @param sentTo as in {@link sendOn}. */
function sendOutcome(
  exchange: PageExchange,
  { provider, outcome, redirectUri, openerOrigin, session }: CallbackResult,
  sentTo?: string,
): void {
  const { response, texts } = exchange;
  const page = messagePage(messageFromOutcome(provider, outcome, texts));
  const status = outcome.outcome === "success" ? 200 : 400;
  if (openerOrigin !== undefined) {
    sendPage(response, status, { ...page, told: connectMessage(openerOrigin, provider.name, outcome) }, { texts });
  } else if (session !== undefined) {
    sendRedirect(response, pageUri(session, { provider: provider.name, ...outcome }));
  } else if (redirectUri !== undefined) {
    sendOn(exchange, redirectUriWith(redirectUri, provider.name, outcome), sentTo);
  } else {
    sendPage(response, status, page, { texts });
  }
}

/** Sends the browser on: see `forwardPage()`. @param name of where it goes, after a form; undefined after a link. */
function sendOn({ response, cookie, texts }: PageExchange, uri: string, name: string | undefined): void {
  if (name === undefined) sendRedirect(response, uri, { cookie });
  else sendPage(response, 200, forwardPage(name, uri, texts), { cookie, texts });
}

/** Parameters that must not appear in an address. */
const TOKENS = ["access_token", "id_token", "refresh_token"];
/** Maximum length of the redirect's address; servers in front of the relay accept this much. */
const MAX_CALLBACK_LENGTH = 6000;

/**
 * `POST /oauth/callback`: the same for a provider that answers with a form (OAuth 2.0 Form Post Response Mode). The form
 * comes from another site, so the browser sends no cookie with it; it does when it follows the redirect with GET.
 */
async function answerPostedCallback(exchange: PageExchange): Promise<void> {
  const parameters = new URLSearchParams(await readForm(exchange));
  for (const name of TOKENS) parameters.delete(name);
  const location = `${CALLBACK_PATH}?${parameters}`;
  if (location.length > MAX_CALLBACK_LENGTH) throw formatError("The provider's answer is too long.");
  sendRedirect(exchange.response, location);
}

/**
 * `GET /oauth/connect/{provider}`: sends the browser to the provider, or first asks for the values that the provider's
 * address needs. A browser that has not seen a page of ours yet gets the confirmation page; continuing needs the session
 * of that page or of the connect page.
 */
async function answerStart(exchange: PageExchange, rawName: string): Promise<void> {
  const { options, response, browser, cookie, texts } = exchange;
  const query = parsePageQuery(exchange.queryText);
  const connectSession = await connectSessionFor(exchange, query, false);
  const provider = requireProvider(options, decodePercent(rawName) ?? "");
  requireListed(connectSession, provider.name);
  const fixed = fixedFrom(connectSession, provider);
  const given = query.pick(valuesOf(provider, "asked").map(({ name }) => name));
  // Secrets are never in an address, so they always have to be asked for.
  if (!hasOwnPage(provider)) {
    requireLink(connectSession);
    const question = await connectByValues(options, { ...connectSession, provider, fixed, given: undefined });
    if (question !== undefined) await sendQuestion(exchange, connectSession, { provider, question, given });
    return;
  }
  const picked = query.pick(provider.oauth2?.connectParameters ?? []);
  const authorizationParameters = { ...Object.fromEntries(picked), ...connectSession.authorizationParameters };
  const { application, userId, redirectUri, openerOrigin, scope } = connectSession;
  const session = connectSession.isPage ? connectSession.session : undefined;
  const isAnswer = query.get("answer") !== undefined;
  const start = await startAuthorization(options, {
    ...{ application, userId, provider, browser, scope, redirectUri, openerOrigin, session, isAnswer },
    authorizationParameters,
    originParameters: given,
    fixed,
    isConfirmed: connectSession.session !== undefined,
  });
  if (start.kind === "ended") {
    const result = { provider, outcome: start.outcome, redirectUri, openerOrigin, session };
    return sendOutcome(exchange, result, isAnswer ? application.name : undefined);
  }
  const goingOn = { ...connectSession, authorizationParameters };
  if (start.kind === "ask") return sendQuestion(exchange, goingOn, { provider, question: start, given });
  if (start.kind === "confirm") {
    const mark = await markFor(options, connectSession);
    const { session } = await withSession(options, { ...goingOn, providers: [provider.name] });
    const page = confirmPage({ provider, mark, userId, session, given, texts }, start.scopes);
    return sendPage(response, 200, page, { cookie, texts });
  }
  sendOn(exchange, start.uri, isAnswer ? provider.displayName : undefined);
}

async function markFor(
  { applications }: Pick<AuthorizationOptions, "applications">,
  { application: { id, name, accentColor } }: Pick<ConnectSession, "application">,
): Promise<Mark> {
  return { name, accentColor, icon: await applications.iconOf(id) };
}

/** A question for the user of a connect session. */
interface Asked {
  readonly provider: Provider;
  readonly question: Question;
  readonly given: ReadonlyMap<string, string>;
}

async function sendQuestion(
  { options, response, cookie, texts }: PageExchange,
  connectSession: ConnectSession,
  { provider, question, given }: Asked,
): Promise<void> {
  const mark = await markFor(options, connectSession);
  const { session, userId } = await withSession(options, { ...connectSession, providers: [provider.name] });
  const page = valuesPage({ provider, mark, userId, question, given, session, texts });
  sendPage(response, question.problem === undefined ? 200 : 400, page, { cookie, texts });
}

/** `POST /oauth/connect/{provider}`: the form in which a user enters keys. */
async function answerValues(exchange: PageExchange, rawName: string): Promise<void> {
  const { options, browser } = exchange;
  const form = parsePageQuery(await readForm(exchange, MAX_KEYS_FORM_BYTES), MAX_SECRET_LENGTH);
  const connectSession = await connectSessionFromSecret(options, form.get("session") ?? "", browser);
  const provider = requireProvider(options, decodePercent(rawName) ?? "");
  const { name } = provider;
  requireListed(connectSession, name);
  if (hasOwnPage(provider)) throw formatError("This provider is connected by its own page. Start again.");
  requireLink(connectSession);
  const fixed = fixedFrom(connectSession, provider);
  const given = form.pick(provider.connectionValues.map(({ name }) => name));
  const entered = connectByValues(options, { ...connectSession, provider, fixed, given });
  const question = await options.pending.track(entered);
  if (question !== undefined) return sendQuestion(exchange, connectSession, { provider, question, given });
  const { application, isPage, redirectUri, openerOrigin } = connectSession;
  const session = isPage ? connectSession.session : undefined;
  const result = { provider, outcome: { outcome: "success" }, redirectUri, openerOrigin, session } as const;
  sendOutcome(exchange, result, application.name);
}

/** Values fixed by the connect link: the browser cannot override them, and they are not asked for. */
function fixedFrom({ originParameters = {} }: ConnectSession, provider: Provider): ValueTexts {
  const asked = valuesOf(provider, "asked").map(({ name }) => name);
  return Object.fromEntries(Object.entries(originParameters).filter(([name]) => asked.includes(name)));
}

/** What the pages need from the rest of the service. */
interface PagesOptions {
  readonly authorization: AuthorizationOptions;
  readonly clientAddress: (request: HttpRequest) => string;
  /** Counts one request from a client's network. Resolves to the whole seconds to wait; 0 when within the limit. */
  readonly takeRequest: (network: string) => Promise<number>;
}

type Answer = (exchange: PageExchange, rest: string) => Promise<void>;

/** Handler by method. A map, not an object: over HTTP/2 a method may be any word, even `constructor`. */
type Answers = ReadonlyMap<string, Answer>;

const VARIABLE = "{provider_name}";

/** Path of each page, with its variable in OpenAPI notation, and its handlers by method. */
export const PAGE_ROUTES: ReadonlyArray<{ readonly path: string; readonly answers: Answers }> = [
  { path: CONNECT_PATH, answers: new Map(Object.entries({ GET: answerConnectPage, POST: answerDisconnect })) },
  { path: `${CONNECT_PATH}/${VARIABLE}`, answers: new Map(Object.entries({ GET: answerStart, POST: answerValues })) },
  { path: CALLBACK_PATH, answers: new Map(Object.entries({ GET: answerCallback, POST: answerPostedCallback })) },
];

/** Handles the pages for browsers: the connect page, the start for one provider, and the callback. */
export function createPagesHandler(options: PagesOptions): PathHandler {
  return (request, response, path) => {
    if (path === "/") return Promise.resolve(answerHome(request, response));
    const [answers, rest] = answersFor(path);
    if (answers === undefined) return undefined;
    const answer = answers.get(request.method ?? "");
    if (answer === undefined) {
      const allow = [...answers.keys()].join(", ");
      answerPlain(response, 405, `Send a ${allow} request.`, { allow });
      return Promise.resolve();
    }
    const queryText = (request.url ?? "").slice(path.length + 1);
    return answerOrExplain(options, request, response, (exchange) => answer({ ...exchange, queryText }, rest));
  };
}

/** `GET /`: a page that says that a relay runs here; it reveals nothing that is stored. */
function answerHome({ method = "", headers }: HttpRequest, response: HttpResponse): void {
  const texts = textsFor(headers["accept-language"]);
  if (method === "GET" || method === "HEAD") {
    sendPage(response, 200, messagePage({ ...texts.home, detail: undefined }), { texts });
  } else answerPlain(response, 405, "Send a GET request.", { allow: "GET, HEAD" });
}

/** The handlers of a path, and the value of its variable; empty if it has none. */
function answersFor(path: string): readonly [Answers | undefined, string] {
  const rest = path.startsWith(`${CONNECT_PATH}/`) ? path.slice(CONNECT_PATH.length + 1) : "";
  const template = rest === "" || rest.includes("/") ? path : `${CONNECT_PATH}/${VARIABLE}`;
  return [PAGE_ROUTES.find((route) => route.path === template)?.answers, rest];
}

/** Reports errors as a page for people. */
async function answerOrExplain(
  { authorization, clientAddress, takeRequest }: PagesOptions,
  request: HttpRequest,
  response: HttpResponse,
  answer: (exchange: Omit<PageExchange, "queryText">) => Promise<void>,
): Promise<void> {
  const texts = textsFor(request.headers["accept-language"]);
  try {
    const address = clientAddress(request);
    const waitSeconds = await takeRequest(clientNetworkOf(address));
    if (waitSeconds > 0) throw rateLimited("Too many requests from this address.", waitSeconds);
    await answer({ options: authorization, request, response, address, texts, ...browserOf(authorization, request) });
  } catch (error) {
    if (!(error instanceof RelayError)) authorization.onFault("pages", error);
    if (response.headersSent || response.destroyed) return;
    const { statusCode: status, waitSeconds } = error instanceof RelayError ? error : { statusCode: 500 };
    if (waitSeconds !== undefined) response.setHeader("retry-after", String(waitSeconds));
    sendPage(response, status, messagePage(messageFromError(error, texts)), { texts });
  }
}
