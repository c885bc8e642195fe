import type { AnswerHead } from "../../call/outcome.js";

/**
 * Provider fields that keep their names: they speak of the answer and its body, and neither a browser nor a proxy, cache or
 * web server in front of the relay acts on them. Every other name might be one that somebody acts on, such as
 * X-Accel-Redirect, X-LiteSpeed-Location, CDN-Cache-Control or Location.
 */
const KEPT = new Set([
  "accept-patch",
  "accept-post",
  "accept-ranges",
  "allow",
  "content-digest",
  "content-disposition",
  "content-language",
  "content-md5",
  "content-range",
  "content-type",
  "deprecation",
  "digest",
  "etag",
  "last-modified",
  "link",
  "repr-digest",
  "retry-after",
  "sunset",
  "warning",
]);

/** Families of such fields: limits, pages and counts, ids, scopes, versions, checksums; what large APIs call their own. */
const KEPT_FAMILIES = [
  /^(?:[a-z0-9]+-)*rate-?limit(?:-|$)/,
  /^x-(?:total|count|page|per-page|next|prev|first|last|offset|cursor|pagination|wp-total)/,
  /^(?!x-request-id$)(?:[a-z0-9]+-)*(?:request|req|correlation|trace|activity)-?id$/,
  /^x-(?:accepted-)?oauth-/,
  /-(?:version|checksum|md5|sha256|crc32c?|hash|usage|quota|remaining)$/,
  /^(?:x-)?(?:amz|amzn|anthropic|discord|dropbox|facebook|fb|github|gitlab|goog|guploader|hubspot|ms|odata|openai|sforce|shopify|slack|stripe|zendesk)-/,
];

/** Links that a browser loads, and a server in front pushes, by itself; the others lead to further pages. */
const LOADED_LINK = /pre(?:load|fetch|connect|render)|stylesheet|icon|manifest/i;

/** What node:http refuses to write: the parser lets DEL through. */
const UNWRITABLE = /[^\t\x20-\x7e\x80-\xff]/;

/** Answers have no content with these statuses (RFC 9110 sections 15.3.5, 15.3.6 and 15.4.5). */
export function hasContent(statusCode: number): boolean {
  return statusCode !== 204 && statusCode !== 205 && statusCode !== 304;
}

/**
 * Fields of an answer on the raw route. Pure. The provider's, byte for byte; those that somebody might act on come as
 * `x-provider-…`, where a caller finds them: also the length of a body that may be shorter after redaction, and the name
 * that the provider gave the request.
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
    if (UNWRITABLE.test(value)) continue;
    const name = written.toLowerCase();
    fields[isKept(name, value) ? name : `x-provider-${name}`] = value;
  }
  fields["x-call-id"] = callId;
  if (head.isPossiblyTruncated === true) fields["x-possibly-truncated"] = "true";
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

function isKept(name: string, value: string): boolean {
  if (name === "link") return !LOADED_LINK.test(value);
  return KEPT.has(name) || KEPT_FAMILIES.some((family) => family.test(name));
}
