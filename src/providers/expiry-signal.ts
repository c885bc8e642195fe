import { slicePath } from "../json/json-path.js";
import { kindAt, textAt } from "../json/json-slice.js";
import type { ExpirySignal, Provider } from "./provider.js";

/**
 * Whether an answer of the provider's API means that the access token has ended, by the provider's `expirySignals`.
 * `body` is valid JSON, or empty where the answer has none. A plain 401 needs no signal: it is not judged here.
 */
export function isExpirySignal(provider: Provider, statusCode: number, body: Uint8Array): boolean {
  return provider.expirySignals.some((signal) => signal.statusCode === statusCode && isInBody(signal, body));
}

function isInBody(signal: ExpirySignal, body: Uint8Array): boolean {
  if (signal.member === undefined) return true;
  const range = slicePath(body, signal.member);
  if (range === undefined) return false;
  const kind = kindAt(body, range.start);
  return kind !== "object" && kind !== "array" && signal.values.has(textAt(body, range));
}
