import { inspect } from "node:util";
import { headerMeant } from "./headers.js";
import type { Credential, HeaderPairs, Provider } from "./provider.js";

/** What placeCredential() puts together. */
export interface CredentialInput {
  readonly provider: Provider;
  /** The caller's, as decideHeaders() forwards them. */
  readonly headers: HeaderPairs;
  /** The relay's own: each is sent unless the caller or the provider's definition has one of that name. */
  readonly defaults: HeaderPairs;
  /** Path and query as decideEgress() allowed them. */
  readonly path: string;
  /** The access token. */
  readonly token: string;
}

/** A request's headers and path with the token in them. Prints itself without either. */
export interface PlacedCredential {
  /** Flat list name, value, name, value, …; exactly one credential, of the provider's own placement. */
  readonly headers: readonly string[];
  readonly path: string;
  toJSON(): string;
  [inspect.custom](): string;
}

/** Never a caller's, whatever placement the provider has. */
const NEVER_SENT = new Set(["authorization", "proxy-authorization", "cookie"]);

/**
 * Places the access token (RFC 6750 section 2). The provider's own placement wins over whatever the caller wrote, in
 * any case and any percent-encoding; other credentials in headers are dropped.
 */
export function placeCredential({ provider, headers, defaults, path, token }: CredentialInput): PlacedCredential {
  const { credential } = provider;
  const reserved = credential.kind === "header" ? headerMeant(credential.name) : undefined;
  const flat: string[] = [];
  // A list: of so few names a Set would cost more than comparing them.
  const names: string[] = [];
  for (const pairs of [headers, provider.defaultHeaders, defaults]) {
    for (const [name, value] of pairs) {
      const key = headerMeant(name.toLowerCase());
      if (key === reserved || NEVER_SENT.has(key) || names.includes(key)) continue;
      names.push(key);
      flat.push(name, value);
    }
  }
  if (credential.kind === "query") return placed(flat, pathWithToken(path, credential.parameter, token));
  flat.push(credential.name, fieldValue(credential, token));
  return placed(flat, path);
}

function placed(headers: readonly string[], path: string): PlacedCredential {
  return { headers, path, toJSON: redacted, [inspect.custom]: redacted };
}

function redacted(): string {
  return "[request with credential]";
}

function fieldValue({ scheme }: Extract<Credential, { kind: "header" }>, token: string): string {
  return scheme === "" ? token : `${scheme} ${token}`;
}

/** Takes every parameter of that name out of the query and appends ours. */
function pathWithToken(path: string, parameter: string, token: string): string {
  const mark = path.indexOf("?");
  const query = mark === -1 ? "" : path.slice(mark + 1);
  const reserved = parameter.toLowerCase();
  const kept = query.split("&").filter((part) => parameterName(part) !== reserved);
  const own = `${parameter}=${encodeURIComponent(token)}`;
  const rest = kept.join("&");
  return `${mark === -1 ? path : path.slice(0, mark)}?${rest === "" ? own : `${rest}&${own}`}`;
}

/** The name of one `name=value`, decoded as servers decode it; names of credentials are ASCII, so bytes will do. */
function parameterName(part: string): string {
  const equals = part.indexOf("=");
  const name = equals === -1 ? part : part.slice(0, equals);
  const decoded = name.replace(/%([0-9A-Fa-f]{2})/g, (_, hex: string) => String.fromCharCode(Number.parseInt(hex, 16)));
  return decoded.toLowerCase();
}
