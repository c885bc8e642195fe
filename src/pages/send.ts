import type { HttpResponse } from "../http/exchange.js";
import { documentFrom, PAGE_FIELDS, type Page, PRIVATE_FIELDS } from "./document.js";

/** What else an answer of a page carries. */
export interface SendOptions {
  /** Value of `Set-Cookie`; undefined for none. */
  readonly cookie?: string | undefined;
}

/** Answers with a page. */
export function sendPage(response: HttpResponse, statusCode: number, page: Page, { cookie }: SendOptions = {}): void {
  const body = Buffer.from(documentFrom(page));
  response.writeHead(statusCode, {
    ...PAGE_FIELDS,
    ...cookieField(cookie),
    "content-length": String(body.length),
  });
  response.end(body);
}

/** Sends the browser on, with a GET (RFC 9110 section 15.4.4). */
export function sendRedirect(response: HttpResponse, location: string, { cookie }: SendOptions = {}): void {
  response.writeHead(303, { location, "content-length": "0", ...PRIVATE_FIELDS, ...cookieField(cookie) });
  response.end();
}

function cookieField(cookie: string | undefined): Readonly<Record<string, string>> {
  return cookie === undefined ? {} : { "set-cookie": cookie };
}
