import {
  MAX_CALLS_PER_MINUTE,
  type ParsedList,
  parseAddresses,
  parseDisplayName,
  parseOrigins,
  parseRedirectUris,
} from "../admin/application-fields.js";
import { parsePublicKey } from "../applications/public-key.js";
import { parseInteger } from "../config/settings.js";
import { usageError } from "./exit-error.js";

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
