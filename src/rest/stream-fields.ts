import type { AnswerHead } from "../relay/outcome.js";

/** Provider fields that would act on our origin, or on what stands between us and the caller, and are never passed on. */
const DROPPED = new Set([
  "accept-ch",
  "age",
  "alt-svc",
  "cache-control",
  "clear-site-data",
  "content-encoding",
  "content-security-policy",
  "content-security-policy-report-only",
  "critical-ch",
  "date",
  "expect-ct",
  "expires",
  "nel",
  "no-vary-search",
  "origin-agent-cluster",
  "origin-trial",
  "permissions-policy",
  "pragma",
  "public-key-pins",
  "public-key-pins-report-only",
  "refresh",
  "report-to",
  "reporting-endpoints",
  "service-worker-allowed",
  "set-login",
  "speculation-rules",
  "strict-transport-security",
  "supports-loading-mode",
  "timing-allow-origin",
  "upgrade-insecure-requests",
  "use-as-dictionary",
  "vary",
  "x-call-id",
  "x-content-type-options",
  "x-error-type",
  "x-lighttpd-send-file",
  "x-reproxy-url",
  "x-sendfile",
  "x-sendfile2",
]);

/** Families of such fields; X-Accel-Redirect makes nginx answer with a file of its own. */
const DROPPED_FAMILIES = /^(?:access-control-|cross-origin-|proxy-|sec-|surrogate-|x-accel-|x-provider-)/;

/**
 * What a client would do by itself if we said it; the length of a body that may be shorter after redaction; and the name
 * that the provider gave the request, since ours has one of its own.
 */
const RENAMED = new Set(["content-length", "location", "www-authenticate", "x-request-id"]);

/** What node:http refuses to write: the parser lets DEL through. */
const UNWRITABLE = /[^\t\x20-\x7e\x80-\xff]/;

/** Answers have no content with these statuses (RFC 9110 sections 15.3.5, 15.3.6 and 15.4.5). */
export function hasContent(statusCode: number): boolean {
  return statusCode !== 204 && statusCode !== 205 && statusCode !== 304;
}

/**
 * Fields of an answer on the raw route. Pure. The provider's, but for those that would act on our origin: they are left
 * out, or come as `x-provider-…` where a caller needs to know them.
 *
 * @param cors fields for a browser; undefined when none asks.
 */
export function fieldsFromHead(
  head: AnswerHead,
  callId: string,
  cors: Readonly<Record<string, string>> | undefined,
): Record<string, string> {
  const fields: Record<string, string> = {};
  for (const [written, value] of head.headers) {
    const name = written.toLowerCase();
    if (DROPPED.has(name) || DROPPED_FAMILIES.test(name) || UNWRITABLE.test(value)) continue;
    fields[RENAMED.has(name) ? `x-provider-${name}` : name] = value;
  }
  fields["x-call-id"] = callId;
  const exposed = [...Object.keys(fields), "x-request-id"].join(", ");
  if (!hasContent(head.statusCode)) delete fields["content-type"];
  return {
    ...fields,
    "cache-control": "no-store",
    // A provider's page must not run as one of ours, whatever its type.
    "content-security-policy": "sandbox; default-src 'none'",
    "cross-origin-resource-policy": "same-origin",
    "x-content-type-options": "nosniff",
    ...cors,
    ...(cors === undefined ? undefined : { "access-control-expose-headers": exposed }),
  };
}
