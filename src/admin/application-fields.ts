import type { ApplicationPatch } from "../applications/application.js";
import { parseOrigin } from "../applications/browser-origin.js";
import { parseCidr } from "../applications/cidr.js";
import type { Parsed } from "../applications/parsed.js";
import { parseRedirectUri } from "../applications/redirect-uri.js";

/** Most entries of one list of an application: each call may have to look at all of them. */
const MAX_LIST_LENGTH = 1000;
/** The greatest limit of calls a minute; more is none. */
export const MAX_CALLS_PER_MINUTE = 1_000_000;
const MAX_NAME_LENGTH = 200;

/** A list as it is stored, or what is wrong with which entry. */
export type ParsedList =
  | { readonly values: readonly string[] }
  | { readonly problem: string; readonly entry: string | undefined };

/** Reads an application's name for people. */
export function parseDisplayName(text: string): Parsed {
  const name = text.trim();
  if (name !== "" && name.length <= MAX_NAME_LENGTH && !/\p{Cc}/u.test(name)) return { value: name };
  return { problem: `must be one line of 1 to ${MAX_NAME_LENGTH} characters` };
}

/** Reads browser origins; each is kept once. */
export function parseOrigins(texts: readonly string[]): ParsedList {
  return parseList(texts, parseOrigin);
}

/** Reads client addresses; each is kept once. */
export function parseAddresses(texts: readonly string[]): ParsedList {
  return parseList(texts, parseCidr);
}

/** Reads redirect addresses; each is kept once. */
export function parseRedirectUris(texts: readonly string[]): ParsedList {
  return parseList(texts, parseRedirectUri);
}

/** Names of the schema for the members of a patch. */
export const FIELD_NAMES: Readonly<Record<keyof ApplicationPatch, string>> = {
  name: "display_name",
  callerAuth: "caller_auth",
  allowedOrigins: "allowed_origins",
  allowedAddresses: "allowed_addresses",
  allowedRedirectUris: "allowed_redirect_uris",
  callsPerMinute: "calls_per_minute",
  connectionCallsPerMinute: "connection_calls_per_minute",
  state: "state",
  captureUntil: "capture_end_time",
  privateKeyHash: "private_key",
};

function parseList(texts: readonly string[], parse: (text: string) => Parsed): ParsedList {
  if (texts.length > MAX_LIST_LENGTH) {
    return { problem: `must have at most ${MAX_LIST_LENGTH} entries`, entry: undefined };
  }
  const values = new Set<string>();
  for (const text of texts) {
    const parsed = parse(text);
    if ("problem" in parsed) return { problem: parsed.problem, entry: text };
    values.add(parsed.value);
  }
  return { values: [...values] };
}
