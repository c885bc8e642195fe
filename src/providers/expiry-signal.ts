import { isJson } from "../json/json-checker.js";
import { slicePath } from "../json/json-path.js";
import { kindAt, textAt } from "../json/json-slice.js";
import type { Bytes } from "../lib/chunks.js";

import type { ExpirySignal, Provider } from "./provider.js";

type MemberSignal = Extract<ExpirySignal, { readonly member: string }>;

/**
 * Whether an answer of the provider's API means that the access token has ended, by the provider's `expirySignals`.
 * A plain 401 needs no signal: it is not judged here. The body, which may be anything, is looked at only where a signal
 * of that status names a member of it; hardly any answer is.
 */
export function isExpirySignal(provider: Provider, statusCode: number, body: Bytes): boolean {
  const signals = provider.expirySignals.filter((signal) => signal.statusCode === statusCode);
  const byMember = signals.filter((signal): signal is MemberSignal => signal.member !== undefined);
  if (byMember.length < signals.length) return true;
  if (byMember.length === 0) return false;
  const text = body.concat();
  return isJson(text) && byMember.some((signal) => isInBody(signal, text));
}

/** Whether an answer with this status must be read before it is known what it says of the token. */
export function asksForBody(provider: Provider, statusCode: number): boolean {
  return provider.expirySignals.some((signal) => signal.statusCode === statusCode && signal.member !== undefined);
}

function isInBody({ member, values }: MemberSignal, body: Uint8Array): boolean {
  const range = slicePath(body, member);
  if (range === undefined) return false;
  const kind = kindAt(body, range.start);
  return kind !== "object" && kind !== "array" && values.has(textAt(body, range));
}
