import { once } from "node:events";
import { connect } from "node:http2";
import { text } from "node:stream/consumers";
import { request } from "undici";

/** One answer as a browser gets it, without following it. */
export interface Seen {
  readonly url: string;
  readonly status: number;
  readonly headers: Readonly<Record<string, string>>;
  readonly body: string;
  /** Where it sends the browser, absolute; empty for nowhere. */
  readonly location: string;
}

/** What a test may choose about one request. */
interface Visiting {
  readonly method?: string;
  readonly headers?: Readonly<Record<string, string>>;
  readonly body?: string;
}

/** Sends one request; h1 or h2. */
export type Send = (url: string, visiting: Visiting) => Promise<Omit<Seen, "url" | "location">>;

/** A browser with cookies of its own that never follows a redirect by itself. */
export interface Browser {
  /** Cookies by name, of all hosts alike: tests have one. */
  readonly cookies: Map<string, string>;
  visit(url: string, visiting?: Visiting): Promise<Seen>;
  /** Posts a form. */
  post(url: string, form: Readonly<Record<string, string>>): Promise<Seen>;
}

/** HTTP/1.1. */
export const overHttp1: Send = async (url, { method = "GET", headers = {}, body }) => {
  const answer = await request(url, { method: method as "GET", headers, ...(body === undefined ? {} : { body }) });
  return { status: answer.statusCode, headers: plain(answer.headers), body: await answer.body.text() };
};

/** HTTP/2 in the clear, a connection for each request. */
export const overHttp2: Send = async (url, { method = "GET", headers = {}, body }) => {
  const { origin, pathname, search } = new URL(url);
  const session = connect(origin);
  try {
    const stream = session.request({ ":method": method, ":path": pathname + search, ...headers });
    stream.end(body);
    const [received] = (await once(stream, "response")) as [Record<string, string | string[]>];
    return { status: Number(received[":status"]), headers: plain(received), body: await text(stream) };
  } finally {
    session.close();
  }
};

/** Opens a browser without cookies. */
export function openBrowser(send: Send = overHttp1): Browser {
  const cookies = new Map<string, string>();
  const visit = async (url: string, { headers, ...visiting }: Visiting = {}): Promise<Seen> => {
    const cookie = [...cookies].map(([name, value]) => `${name}=${value}`).join("; ");
    const answer = await send(url, { ...visiting, headers: { ...(cookie === "" ? {} : { cookie }), ...headers } });
    const [, name, value] = /^([^=]+)=([^;]*)/.exec(answer.headers["set-cookie"] ?? "") ?? [];
    if (name !== undefined) cookies.set(name, value ?? "");
    const { location = "" } = answer.headers;
    return { url, ...answer, location: location === "" ? "" : new URL(location, url).href };
  };
  return {
    cookies,
    visit,
    post: (url, form) =>
      visit(url, {
        method: "POST",
        headers: { "content-type": "application/x-www-form-urlencoded" },
        body: new URLSearchParams(form).toString(),
      }),
  };
}

function plain(headers: Readonly<Record<string, string | string[] | undefined>>): Record<string, string> {
  return Object.fromEntries(Object.entries(headers).map(([name, value]) => [name, String(value ?? "")]));
}
