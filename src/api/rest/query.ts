import { MAX_ID_LENGTH } from "../../applications/caller.js";
import type { NamedKeys } from "../../applications/caller-keys.js";
import { formatError } from "../../model/errors.js";

/** Old names of query parameters that clients of the original service still send (compat C1). */
const ALIASES: ReadonlyMap<string, string> = new Map([["pinc_client_id", "public_key"]]);

/** Query parameters of a call: the fields of the request message, and the call itself in dotted form (compat C11). */
export interface CallQuery {
  /** By field name. */
  readonly fields: ReadonlyMap<string, string>;
  /** `body.url`, `body.headers.x-a`, …: path without the prefix → value, in the order written. */
  readonly dotted: ReadonlyArray<readonly [path: string, value: string]>;
}

/**
 * Reads the query strictly: a known name twice, a known name with brackets, a percent sign that starts no escape and
 * bytes that are not UTF-8 are CALL_FORMAT_ERROR. Unknown names are ignored, as clients add cache busters.
 */
export function parseCallQuery(query: string, known: ReadonlyMap<string, string>): CallQuery {
  const fields = new Map<string, string>();
  const dotted: Array<readonly [string, string]> = [];
  const decode = ENCODED.test(query) ? decodeOr : asWritten;
  for (const pair of query === "" ? [] : query.split("&")) {
    const equals = pair.indexOf("=");
    const name = decode(equals === -1 ? pair : pair.slice(0, equals), "a query parameter's name");
    if (name.startsWith("body.")) {
      dotted.push([name.slice("body.".length), decode(equals === -1 ? "" : pair.slice(equals + 1), "body.*")]);
      continue;
    }
    const field = fieldFor(name, known);
    if (field === undefined) continue;
    if (fields.has(field)) throw formatError(`${field} is given more than once in the query. Send it once.`);
    fields.set(field, checkedValue(decode(equals === -1 ? "" : pair.slice(equals + 1), field), field));
  }
  return { fields, dotted };
}

/** The keys and the signature that a query names. */
export function namedKeysOf({ fields }: CallQuery): NamedKeys {
  return {
    publicKey: fields.get("public_key") ?? "",
    privateKey: fields.get("private_key"),
    userSignature: fields.get("user_signature"),
  };
}

function fieldFor(name: string, known: ReadonlyMap<string, string>): string | undefined {
  const direct = known.get(name) ?? ALIASES.get(name);
  if (direct !== undefined || !name.includes("[")) return direct;
  const field = fieldFor(name.slice(0, name.indexOf("[")), known);
  if (field !== undefined) throw formatError(`${field} must be one plain value in the query, without brackets.`);
  return undefined;
}

function checkedValue(value: string, field: string): string {
  if (value.length > MAX_ID_LENGTH) {
    throw formatError(`${field} is longer than ${MAX_ID_LENGTH} characters. Send the value you were given.`);
  }
  return value;
}

const ENCODED = /[%+]/;

/** Nothing of the query is encoded, as in most calls. */
function asWritten(raw: string): string {
  return raw;
}

/** Percent-decoding of the URL standard's form parser (`+` is a space), but strict. */
function decodeOr(raw: string, field: string): string {
  if (!raw.includes("%")) return raw.includes("+") ? raw.replaceAll("+", " ") : raw;
  try {
    return decodeURIComponent(raw.replaceAll("+", " "));
  } catch {
    throw formatError(`${field} is not correctly percent-encoded. Encode it as UTF-8.`);
  }
}
