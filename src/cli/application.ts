import {
  MAX_CALLS_PER_MINUTE,
  type ParsedList,
  parseAddresses,
  parseDisplayName,
  parseOrigins,
  parseRedirectUris,
} from "../admin/applications.js";
import { type Application, type CallerAuth, parsePublicKey } from "../applications/application.js";
import { parseInteger } from "../config/setting-list.js";
import { failure, textFields, usageError } from "./command.js";

/** The three proofs as the command line spells them. */
export const CALLER_AUTH: ReadonlyMap<string, CallerAuth> = new Map([
  ["public-key", "PUBLIC_KEY"],
  ["signed-user", "SIGNED_USER"],
  ["private-key", "PRIVATE_KEY"],
]);

/** An application for programs: an allow-list of members, so that no key hash is ever among them. */
export function jsonFromApplication(application: Application) {
  const {
    publicKey,
    name,
    callerAuth,
    allowedOrigins,
    allowedAddresses,
    allowedRedirectUris,
    state,
    captureUntil,
    createdAt,
    updatedAt,
  } = application;
  const { callsPerMinute, connectionCallsPerMinute } = application;
  return {
    publicKey,
    name,
    callerAuth,
    allowedOrigins,
    allowedAddresses,
    allowedRedirectUris,
    callsPerMinute,
    connectionCallsPerMinute,
    state,
    captureUntil: captureUntil > Date.now() ? new Date(captureUntil).toISOString() : null,
    createdAt: new Date(createdAt).toISOString(),
    updatedAt: new Date(updatedAt).toISOString(),
  };
}

/** An application for a person. */
export function textFromApplication(application: Application): string {
  const { publicKey, name, callerAuth, allowedOrigins, allowedAddresses, state, captureUntil } =
    jsonFromApplication(application);
  return textFields([
    ["name", name],
    ["public key", publicKey],
    ["state", state],
    ["caller auth", callerAuth],
    ["browser origins", allowedOrigins.join(", ") || "none: no browser access"],
    ["client addresses", allowedAddresses.join(", ") || "any"],
    ["redirects to", application.allowedRedirectUris.join(", ") || "nowhere"],
    ["calls a minute", callsText(application.callsPerMinute)],
    ["  per connection", callsText(application.connectionCallsPerMinute)],
    ["calls captured", captureUntil === null ? "no" : `until ${captureUntil}`],
    ["created", new Date(application.createdAt).toISOString()],
    ["updated", new Date(application.updatedAt).toISOString()],
  ]);
}

function callsText(callsPerMinute: number): string {
  return callsPerMinute === 0 ? "no limit" : String(callsPerMinute);
}

/** What a command says when the public key names nothing. */
export function noApplication(): Error {
  return failure("There is no application with this public key. 'relay app list' lists them.");
}

/** Reads an application's name. */
export function nameFrom(text: string): string {
  const parsed = parseDisplayName(text);
  if ("value" in parsed) return parsed.value;
  throw usageError(`The name ${parsed.problem}.`);
}

/** Reads `--public-key`. */
export function publicKeyFrom(text: string): string {
  const parsed = parsePublicKey(text);
  if ("value" in parsed) return parsed.value;
  throw usageError(`--public-key: ${parsed.problem}.`);
}

/** Reads all `--allow-origin`. */
export function originsFrom(texts: readonly string[] = []): readonly string[] {
  return listFrom(parseOrigins(texts), "--allow-origin");
}

/** Reads all `--allow-address`. */
export function addressesFrom(texts: readonly string[] = []): readonly string[] {
  return listFrom(parseAddresses(texts), "--allow-address");
}

/** Reads all `--allow-redirect`. */
export function redirectUrisFrom(texts: readonly string[] = []): readonly string[] {
  return listFrom(parseRedirectUris(texts), "--allow-redirect");
}

/** Reads `--calls-per-minute` and `--connection-calls-per-minute`; 0 is no limit. */
export function callsFrom(text: string | undefined, option: string): number {
  const calls = parseInteger(text ?? "0", 0, MAX_CALLS_PER_MINUTE);
  if (calls !== undefined) return calls;
  throw usageError(`${option} must be a whole number from 0 (no limit) to ${MAX_CALLS_PER_MINUTE}.`);
}

function listFrom(parsed: ParsedList, option: string): readonly string[] {
  if ("values" in parsed) return parsed.values;
  throw usageError(`${[option, parsed.entry].filter(Boolean).join(" ")}: ${parsed.problem}.`);
}
