import { MAX_URL_LENGTH } from "./url-text.js";

/** A url taken apart. */
export interface PlainUrl {
  /** One of the given origins. */
  readonly origin: string;
  /** Path and query. */
  readonly path: string;
}

/**
 * Segments that do not begin with a dot, then a query: of characters that are in no percent-encode set of the URL standard
 * and that no parser of urls gives a meaning there. A percent sign has one in a path, where `%2e` is a dot.
 */
const PLAIN = /^(?:\/(?:[\w~!$&()*+,;=:@-][\w.~!$&()*+,;=:@-]*)?)+(?:\?[\w.~!$&()*+,;=:@/?%-]*)?$/;

/**
 * Takes a url apart that begins with one of the origins, letter for letter, and of which the rest means the same to every
 * reader: text and parser cannot disagree about it. Undefined for any other, which has to be judged by both.
 *
 * Nearly all urls of calls are of this kind, and it takes a tenth of the time.
 *
 * @param origins as the URL standard writes them.
 */
export function parsePlainUrl(url: string, origins: ReadonlySet<string>): PlainUrl | undefined {
  if (url.length > MAX_URL_LENGTH) return undefined;
  const slash = url.indexOf("/", "https://".length);
  const origin = url.slice(0, Math.max(0, slash));
  if (!origins.has(origin)) return undefined;
  const path = url.slice(slash);
  return PLAIN.test(path) ? { origin, path } : undefined;
}
