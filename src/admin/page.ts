import { createHash } from "node:crypto";
import { invalidArgument } from "./invalid-argument.js";

const DEFAULT_SIZE = 100;
/** More would hold the event loop, which serves calls as well, for over ten milliseconds. */
const MAX_SIZE = 500;

/** An id, a key or a name of ours: what the store can hold in a column of text. */
export const NAME_PART: RegExp = /^[\x21-\x7e]{1,256}$/;
/** A user's id: any text. */
export const USER_PART: RegExp = /^.{1,256}$/s;
/** A whole number. */
export const NUMBER_PART: RegExp = /^\d{1,16}$/;

/** Which page is asked for (AIP-158). */
export interface Page {
  readonly size: number;
  /** Key of the last row of the page before; undefined for the first page. */
  readonly after: readonly string[] | undefined;
  /** The token of the page behind the row of this key. */
  tokenAfter(key: readonly string[]): string;
}

/** The part of a request that asks for a page. */
export interface PageRequest {
  readonly pageSize: number;
  readonly pageToken: string;
}

/**
 * Reads which page is asked for. A token is the key of a row and a digest of the request's other fields, which must stay
 * as they were; it is no secret and grants nothing, and anybody can make one: it is read like any other input.
 *
 * @param filter the request's other fields that count.
 * @param parts what each text of a key must be like.
 */
export function pageFrom(
  { pageSize, pageToken }: PageRequest,
  filter: readonly unknown[],
  parts: readonly RegExp[],
): Page {
  if (pageSize < 0) throw invalidArgument("page_size", "must not be negative");
  const digest = digestOf(filter);
  const after = pageToken === "" ? undefined : keyFrom(pageToken, digest, parts);
  return {
    size: Math.min(pageSize || DEFAULT_SIZE, MAX_SIZE),
    after,
    tokenAfter: (key) => Buffer.from(JSON.stringify([digest, ...key])).toString("base64url"),
  };
}

/** One page of rows that are all at hand, sorted by a key of one text. */
export function pageOf<Row>(
  { size, after, tokenAfter }: Page,
  sorted: readonly Row[],
  keyOf: (row: Row) => string,
): { readonly rows: readonly Row[]; readonly nextPageToken: string } {
  const [last] = after ?? [];
  const rest = last === undefined ? sorted : sorted.filter((row) => keyOf(row) > last);
  return pageOfRest({ size, tokenAfter }, rest, (row) => [keyOf(row)]);
}

/** One page of rows that begin behind the page before. One row more than the page has tells that there are more. */
export function pageOfRest<Row>(
  { size, tokenAfter }: Pick<Page, "size" | "tokenAfter">,
  rest: readonly Row[],
  keyOf: (row: Row) => readonly string[],
): { readonly rows: readonly Row[]; readonly nextPageToken: string } {
  const rows = rest.slice(0, size);
  const last = rows.at(-1);
  return { rows, nextPageToken: last !== undefined && rest.length > size ? tokenAfter(keyOf(last)) : "" };
}

function keyFrom(token: string, digest: string, parts: readonly RegExp[]): readonly string[] {
  const [ofRequest, ...key] = textsFrom(token);
  const isKey = key.length === parts.length && parts.every((part, at) => part.test(key[at] ?? ""));
  if (ofRequest === digest && isKey) return key;
  throw invalidArgument("page_token", "is not one of a request with these fields; begin with the first page");
}

function textsFrom(token: string): readonly string[] {
  try {
    const value: unknown = JSON.parse(Buffer.from(token, "base64url").toString());
    return Array.isArray(value) && value.every((each) => typeof each === "string") ? value : [];
  } catch {
    // No token of ours, which the caller is told.
    return [];
  }
}

function digestOf(filter: readonly unknown[]): string {
  return createHash("sha256").update(JSON.stringify(filter)).digest("base64url").slice(0, 8);
}
