import { parseOrigin } from "../applications/browser-origin.js";
import { parseCidr } from "../applications/cidr.js";
import type { Parsed } from "../applications/parsed.js";
import { parsePublicKey } from "../applications/public-key.js";
import { parseRedirectUri } from "../applications/redirect-uri.js";
import { parseInteger } from "../settings.js";
import { usageError } from "./exit-error.js";

const MAX_NAME_LENGTH = 200;
const MAX_CALLS_PER_MINUTE = 1_000_000;

/** Reads an application's name. */
export function nameFrom(text: string): string {
  const name = text.trim();
  if (name !== "" && name.length <= MAX_NAME_LENGTH && !/\p{Cc}/u.test(name)) return name;
  throw usageError(`The name must be one line of 1 to ${MAX_NAME_LENGTH} characters.`);
}

/** Reads `--public-key`. */
export function publicKeyFrom(text: string): string {
  return valueFrom(parsePublicKey(text), "--public-key");
}

/** Reads all `--allow-origin`. */
export function originsFrom(texts: readonly string[] = []): readonly string[] {
  return [...new Set(texts.map((text) => valueFrom(parseOrigin(text), `--allow-origin ${text}`)))];
}

/** Reads all `--allow-address`. */
export function addressesFrom(texts: readonly string[] = []): readonly string[] {
  return [...new Set(texts.map((text) => valueFrom(parseCidr(text), `--allow-address ${text}`)))];
}

/** Reads all `--allow-redirect`. */
export function redirectUrisFrom(texts: readonly string[] = []): readonly string[] {
  return [...new Set(texts.map((text) => valueFrom(parseRedirectUri(text), `--allow-redirect ${text}`)))];
}

/** Reads `--calls-per-minute` and `--connection-calls-per-minute`; 0 is no limit. */
export function callsFrom(text: string | undefined, option: string): number {
  const calls = parseInteger(text ?? "0", 0, MAX_CALLS_PER_MINUTE);
  if (calls !== undefined) return calls;
  throw usageError(`${option} must be a whole number from 0 (no limit) to ${MAX_CALLS_PER_MINUTE}.`);
}

function valueFrom(parsed: Parsed, option: string): string {
  if ("value" in parsed) return parsed.value;
  throw usageError(`${option}: ${parsed.problem}.`);
}
