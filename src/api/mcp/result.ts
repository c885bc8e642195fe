import type { CallToolResult } from "@modelcontextprotocol/sdk/types.js";
import type { Answer, AnswerData, Outcome } from "../../call/outcome.js";
import { type Bytes, bytesOf } from "../../lib/chunks.js";
import type { ErrorType } from "../../model/errors.js";

/** A tool result that is one JSON text. */
export function resultFromJson(value: unknown): CallToolResult {
  return { content: [{ type: "text", text: JSON.stringify(value) }] };
}

/**
 * The outcome of a call as one JSON text: status, content type and data, or what went wrong and what to do. The
 * provider's text appears only in values, so that it cannot pass for the relay's own.
 *
 * @param maxBytes most bytes of the provider's body to show.
 */
export function resultFromOutcome(outcome: Outcome, maxBytes: number): CallToolResult {
  const isError = outcome.result === "error";
  const { answer, callId } = outcome;
  const shown = answer && shownFrom(answer, maxBytes);
  const head = isError
    ? {
        errorType: outcome.errorType,
        statusCode: outcome.statusCode,
        message: outcome.message,
        next: nextOf(outcome, answer),
      }
    : { statusCode: outcome.answer.statusCode, ...(leadsElsewhere(outcome.answer) && { next: REDIRECT }) };
  const text = JSON.stringify({ ...head, ...shown?.members, callId });
  const data = shown === undefined ? "" : `,"data":${shown.json}`;
  return { content: [{ type: "text", text: `${text.slice(0, -1)}${data}}` }], ...(isError && { isError }) };
}

const REDIRECT =
  "Redirects are not followed. Call the URL in headers.location yourself if it is on one of the account's apiOrigins; the account's token is sent nowhere else.";

function leadsElsewhere({ statusCode, headers }: Answer): boolean {
  return statusCode >= 300 && statusCode < 400 && headers.some(([name]) => name.toLowerCase() === "location");
}

/** The part of an answer that is shown. */
interface Shown {
  readonly members: Readonly<Record<string, unknown>>;
  /** The value of `data`. */
  readonly json: string;
}

function shownFrom({ contentType, headers, data, isPossiblyTruncated }: Answer, maxBytes: number): Shown {
  const told = headers.filter(([name]) => TOLD.test(name));
  const members = {
    contentType,
    ...(told.length > 0 && { headers: Object.fromEntries(told) }),
    ...(isPossiblyTruncated === true && { possiblyTruncated: true }),
  };
  const { json, encoding, cut } = dataFrom(data, maxBytes);
  return { members: { ...members, ...(encoding && { dataEncoding: encoding }), ...(cut && { cut }) }, json };
}

/** Fields for paging, waiting, redirects and change detection. Others would only fill a model's context. */
const TOLD =
  /^(?:link|location|content-location|retry-after|etag|last-modified|content-range|allow|.*(?:page|cursor|total|rate-?limit).*)$/i;

interface ShownData {
  readonly json: string;
  readonly encoding?: "base64";
  readonly cut?: { readonly shownBytes: number; readonly totalBytes: number; readonly next: string };
}

function dataFrom(data: AnswerData, maxBytes: number): ShownData {
  switch (data.kind) {
    case "empty":
      return { json: "{}" };
    case "json":
      return data.text.length > maxBytes ? cutText(data.text, maxBytes) : { json: data.text.concat().toString() };
    case "text":
      return textFrom(bytesOf(Buffer.from(data.text)), maxBytes);
    case "utf8":
      return textFrom(data.bytes, maxBytes);
    case "binary":
    case "body":
      return binaryFrom(data.bytes, maxBytes);
  }
}

function textFrom(text: Bytes, maxBytes: number): ShownData {
  return text.length > maxBytes ? cutText(text, maxBytes) : { json: JSON.stringify(text.concat().toString()) };
}

const NARROW =
  "Only the beginning is shown, as text. Ask for less: a smaller page, fewer fields or a filter. `headers` may name the next page.";

function cutText(text: Bytes, maxBytes: number): ShownData {
  // An incomplete last character is held back.
  const start = new TextDecoder().decode(startOf(text, maxBytes), { stream: true });
  const cut = { shownBytes: Buffer.byteLength(start), totalBytes: text.length, next: NARROW };
  return { json: JSON.stringify(start), cut };
}

function startOf({ pieces }: Bytes, maxBytes: number): Buffer {
  const start: Uint8Array[] = [];
  let left = maxBytes;
  for (const piece of pieces) {
    if (left <= 0) break;
    start.push(piece.subarray(0, left));
    left -= piece.length;
  }
  return Buffer.concat(start);
}

const TOO_LONG_FOR_BASE64 =
  "This is not text, and too long to show. Ask for something smaller or for a text version, or have the user download it.";

/** Base64 has four characters for three bytes (RFC 4648 section 4). */
function binaryFrom(bytes: Bytes, maxBytes: number): ShownData {
  if (bytes.length * 4 <= maxBytes * 3)
    return { json: JSON.stringify(bytes.concat().toString("base64")), encoding: "base64" };
  return { json: "null", cut: { shownBytes: 0, totalBytes: bytes.length, next: TOO_LONG_FOR_BASE64 } };
}

const MAYBE_DONE = "If the call changes something, check whether it was done before sending it again.";

/** What a model should do about each failure. */
const NEXT: Readonly<Record<Exclude<ErrorType, "API_ERROR">, string>> = {
  CALL_FORMAT_ERROR: "Correct the arguments as the message says, and call again.",
  INVALID_PUBLIC_KEY: "Your token no longer works. Stop, and ask the user for a new one.",
  CALLER_NOT_ALLOWED: "Your token is not accepted. Stop, and ask the user for a new one.",
  INVALID_PROVIDER: "Use the name of a provider that list_accounts shows.",
  URL_NOT_ALLOWED:
    "Use a plain URL on one of the account's apiOrigins, which list_accounts shows. Other hosts cannot be reached.",
  CALL_NOT_PERMITTED:
    "You are not allowed to do this; rewording the request will not help. Keep to the rules that list_accounts shows, or tell the user what you need and why.",
  INVALID_OAUTHID:
    "Ask the user to connect an account of this provider in the application that gave you the token. Until then no call will work.",
  REAUTHORIZATION_REQUIRED:
    "Ask the user to connect this account again in the application that gave you the token. Until then no call will work.",
  PROVIDER_UNREACHABLE: `Try once more, then tell the user that the provider cannot be reached. ${MAYBE_DONE}`,
  PROVIDER_TIMEOUT: `Ask for less at a time, or tell the user that the provider is too slow. ${MAYBE_DONE}`,
  PROVIDER_RESPONSE_INVALID: `Try once more, then tell the user that the provider's answer cannot be read. ${MAYBE_DONE}`,
  RESPONSE_TOO_LARGE: "Ask for less: a smaller page, fewer fields, or a filter.",
  REQUEST_TOO_LARGE: "Send less at a time.",
  RATE_LIMITED: "Wait as long as the message says, then try again.",
  REFRESH_UNAVAILABLE: "Wait as long as the message says, then try again. If it still fails, tell the user.",
  PROVIDER_MISCONFIGURED: "Only the operator of the relay can fix this. Tell the user, and do not try again.",
  STORE_UNAVAILABLE: "Wait a minute, then try again. If it still fails, tell the user.",
  OVERLOADED: `Wait a few seconds, then try again. ${MAYBE_DONE}`,
  INTERNAL_ERROR: `The relay failed. Tell the user, and give the callId. ${MAYBE_DONE}`,
};

/** What a model should do after a failure, in a sentence or two. */
export function nextAfter(errorType: ErrorType, statusCode: number): string {
  return errorType === "API_ERROR" ? nextAfterStatus(statusCode) : NEXT[errorType];
}

function nextOf({ errorType, statusCode }: Outcome & { result: "error" }, answer: Answer | undefined): string {
  const wait = answer?.headers.find(([name]) => name.toLowerCase() === "retry-after")?.[1];
  const isWait = wait !== undefined && /^\d{1,6}$/.test(wait);
  return isWait ? `Wait ${wait} s, then try again.` : nextAfter(errorType, statusCode);
}

function nextAfterStatus(statusCode: number): string {
  if (statusCode === 401 || statusCode === 403) {
    return "The provider does not allow this account to do that. Read data for the reason: the user may lack a permission there, or may have to connect again with an additional scope. Do not look for a way around it.";
  }
  if (statusCode === 404 || statusCode === 410) {
    return "Check the URL and the names in it. Many providers also answer this way for things that the user may not see.";
  }
  if (statusCode === 429) return "Wait a minute, then try again, and make fewer requests.";
  if (statusCode >= 500) return `The provider failed. Wait, try once more, then tell the user. ${MAYBE_DONE}`;
  return "Read data: it says what the provider found wrong with the request. Correct that, and call again.";
}
