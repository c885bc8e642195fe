import { randomBytes } from "node:crypto";
import type { PathHandler } from "../http/dispatch.js";
import { answerPlain, type HttpRequest, type HttpResponse } from "../http/exchange.js";
import { RelayError } from "../model/errors.js";
import { CALLBACK_PATH } from "../oauth/callback.js";
import { CONNECT_PATH } from "../oauth/connect-link.js";
import type { AuthorizationOptions } from "../oauth/options.js";
import { answerCallback, answerConnectPage, answerDisconnect, answerStart } from "./connect.js";
import { messageFromError, messagePage, sendPage } from "./document.js";
import { createBrowserCookie, type PageExchange, visitorFrom } from "./visit.js";

/** What the pages need from the rest of the service. */
export interface PagesOptions {
  readonly authorization: AuthorizationOptions;
  readonly clientAddress: (request: HttpRequest) => string;
  /** Counts one visit of a visitor, see `visitorFrom()`. Resolves to the whole seconds to wait, 0 when it is within the limit. */
  readonly takeVisit: (visitor: string) => Promise<number>;
}

type Answer = (exchange: PageExchange, rest: string) => Promise<void>;

/** Method → answer, of each path. A map, since over HTTP/2 a method may be any word, `constructor` too. */
type Answers = ReadonlyMap<string, Answer>;
const CONNECT: Answers = new Map([
  ["GET", answerConnectPage],
  ["POST", answerDisconnect],
]);
const START: Answers = new Map([["GET", answerStart]]);
const CALLBACK: Answers = new Map([["GET", answerCallback]]);
const VARIABLE = "{provider_name}";

/** Path of each page, with its variable as OpenAPI writes one, and what it answers to which method. */
export const PAGE_ROUTES: ReadonlyArray<{ readonly path: string; readonly answers: Answers }> = [
  { path: CONNECT_PATH, answers: CONNECT },
  { path: `${CONNECT_PATH}/${VARIABLE}`, answers: START },
  { path: CALLBACK_PATH, answers: CALLBACK },
];

/** What browsers see: the connect page, the way to one provider, and the way back. */
export function createPagesHandler(options: PagesOptions): PathHandler {
  return (request, response, path) => {
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

function answersFor(path: string): readonly [Answers | undefined, string] {
  for (const { path: template, answers } of PAGE_ROUTES) {
    const rest = variableOf(template, path);
    if (rest !== undefined) return [answers, rest];
  }
  return [undefined, ""];
}

/** What stands for the variable, empty where there is none; undefined when it is another path. */
function variableOf(template: string, path: string): string | undefined {
  if (!template.endsWith(VARIABLE)) return path === template ? "" : undefined;
  const prefix = template.slice(0, -VARIABLE.length);
  const rest = path.startsWith(prefix) ? path.slice(prefix.length) : "";
  return rest === "" || rest.includes("/") ? undefined : rest;
}

/** A person reads what went wrong, on a page. */
async function answerOrExplain(
  { authorization, clientAddress, takeVisit }: PagesOptions,
  request: HttpRequest,
  response: HttpResponse,
  answer: (exchange: Omit<PageExchange, "queryText">) => Promise<void>,
): Promise<void> {
  try {
    const address = clientAddress(request);
    requireVisit(await takeVisit(visitorFrom(address)));
    await answer({ options: authorization, request, response, address, ...browserOf(authorization, request) });
  } catch (error) {
    if (!(error instanceof RelayError)) authorization.onFault("pages", error);
    if (response.headersSent || response.destroyed) return;
    sendPage(response, error instanceof RelayError ? error.statusCode : 500, messagePage(messageFromError(error)));
  }
}

function browserOf(
  { publicUrl }: AuthorizationOptions,
  request: HttpRequest,
): Pick<PageExchange, "browser" | "cookie"> {
  const cookie = createBrowserCookie(publicUrl()?.startsWith("https:") ?? false);
  const known = cookie.read(request.headers.cookie);
  if (known !== undefined) return { browser: known, cookie: undefined };
  const browser = randomBytes(32).toString("base64url");
  return { browser, cookie: cookie.write(browser) };
}

function requireVisit(waitSeconds: number): void {
  if (waitSeconds === 0) return;
  throw new RelayError("RATE_LIMITED", `Too many visits from this address. Try again in ${waitSeconds} seconds.`);
}
