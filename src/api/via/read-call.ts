import { hash } from "node:crypto";
import { bearerFrom, type CallerFields, callerFrom, type NamedKeys } from "../../applications/caller.js";
import type { HttpRequest } from "../../http/exchange.js";
import { keepNewest } from "../../lib/keep-newest.js";
import { decodePercent } from "../../lib/parse-url.js";
import { formatError, RelayError } from "../../model/errors.js";
import { headerMeant, isDroppedHeader, takeParameter } from "../../providers/credential.js";
import type { Credential, HeaderPairs, Provider } from "../../providers/provider.js";
import { createRedactor, type Redactor } from "../../redaction/redact.js";

/** Path prefix of the pass-through route. */
export const VIA = "/via/";

/** A request target in its parts, none of them decoded. */
export interface Target {
  readonly providerName: string;
  /** `host` or `host:port`. */
  readonly host: string;
  /** Path and query for the provider, as written. */
  readonly path: string;
}

const TARGET = /^\/via\/([^/?#]+)\/([^/?#]+)(.*)$/s;

/** Parses `/via/PROVIDER/HOST/PATH`; undefined for any other target. Pure. */
export function parseTarget(target: string): Target | undefined {
  const [, providerName, host, path = ""] = TARGET.exec(target) ?? [];
  if (providerName === undefined || host === undefined) return undefined;
  // A base URL without a path: HTTP has no request without one (RFC 9112 section 3.2.1).
  return { providerName, host, path: path.startsWith("/") ? path : `/${path}` };
}

/** The head of a request as it is passed on, and its caller. */
export interface PassedHead {
  readonly url: string;
  /** Path and query without the caller's proof. */
  readonly path: string;
  readonly headers: HeaderPairs;
  readonly caller: ReturnType<typeof callerFrom>;
  /** Finds the caller's proof in what is sent on. Call it only once the proof has been verified. */
  readonly proofs: () => Redactor;
  /** See `PassedRequest`. */
  readonly requireProofOnce: () => void;
}

/** The default credential (RFC 6750 section 2.1). Used for an unknown provider, too, which is refused later. */
const BEARER: Credential = { kind: "header", name: "authorization", scheme: "Bearer", value: "{access_token}" };

/**
 * Reads what to pass on of a request, and who the caller is: a call token in the place of this provider's credential or
 * in `x-relay-authorization`, or keys in the relay's own fields. None of these is passed on.
 *
 * Throws RelayError CALLER_NOT_ALLOWED for a request that names no caller and for a call token that cannot be read;
 * CALL_FORMAT_ERROR for a field of the relay's own that is repeated.
 */
export function readPassedHead(
  request: Pick<HttpRequest, "rawHeaders" | "headers">,
  { host, path }: Target,
  provider: Provider | undefined,
  address: string,
): PassedHead {
  const credential = provider?.credential ?? BEARER;
  const { query, path: cleanPath } = splitQuery(path, credential);
  const fields = fieldsOf(request.rawHeaders);
  const own = ownFieldsOf(fields);
  const inPlace = [...tokensIn(fields, credential), ...query];
  const shown = own.isNamed ? inPlace.filter((text) => TOKEN.test(text)) : inPlace;
  const texts = own.isNamed || shown.length > 1 ? [...new Set([...own.authorization, ...shown])] : shown;
  const callerFields: CallerFields = {
    authorization: texts.map((text) => `Bearer ${text}`),
    partnerKey: [],
    origin: request.headers.origin,
    address,
  };
  const caller = callerFrom(callerFields, own.keys);
  if (caller.publicKey === "" || caller.userId === "") throw unnamed();
  let found: Redactor | undefined;
  const proofs = () => {
    found ??= redactorFor(caller);
    return found;
  };
  const headers = forwarded(fields, credential, request.headers.connection);
  const requireProofOnce = () => requireOnce(proofs(), cleanPath, headers);
  const scheme = provider?.exactOrigins.has(`http://${host.toLowerCase()}`) ? "http" : "https";
  return { url: `${scheme}://${host}${cleanPath}`, path: cleanPath, headers, caller, proofs, requireProofOnce };
}

function unnamed(): RelayError {
  return new RelayError(
    "CALLER_NOT_ALLOWED",
    "The request does not identify its caller: send a call token where the provider's token goes, or as x-relay-authorization: Bearer …, or send x-relay-public-key and x-relay-user-id.",
  );
}

/** Names in lower case, without the pseudo-header fields of HTTP/2. */
function fieldsOf(rawHeaders: readonly string[]): HeaderPairs {
  const fields: Array<readonly [string, string]> = [];
  for (let at = 0; at + 1 < rawHeaders.length; at += 2) {
    const name = rawHeaders[at] as string;
    if (!name.startsWith(":")) fields.push([name.toLowerCase(), rawHeaders[at + 1] as string]);
  }
  return fields;
}

/** The contents of the relay's own fields. */
interface OwnFields {
  readonly authorization: readonly string[];
  readonly keys: NamedKeys;
  /** Whether one of them names the caller; then the credential's place may hold anything. */
  readonly isNamed: boolean;
}

function ownFieldsOf(fields: HeaderPairs): OwnFields {
  const authorization = valuesOf(fields, "x-relay-authorization").map(bearerOf);
  const keys = {
    publicKey: only(fields, "x-relay-public-key") ?? "",
    userId: only(fields, "x-relay-user-id") ?? "",
    privateKey: only(fields, "x-relay-private-key"),
    userSignature: only(fields, "x-relay-user-signature"),
  };
  return { authorization, keys, isNamed: authorization.length > 0 || keys.publicKey !== "" };
}

function valuesOf(fields: HeaderPairs, wanted: string): readonly string[] {
  return fields.filter(([name]) => name === wanted).map(([, value]) => value);
}

/** The value of a field that may occur once, decoded as UTF-8, since an id may be any text. */
function only(fields: HeaderPairs, name: string): string | undefined {
  const [value, ...more] = valuesOf(fields, name);
  if (more.length > 0) throw formatError(`${name} is given more than once. Send it once.`);
  return value && Buffer.from(value, "latin1").toString();
}

function bearerOf(value: string): string {
  const text = bearerFrom(value);
  if (text) return text;
  throw new RelayError("CALLER_NOT_ALLOWED", "x-relay-authorization must be Bearer followed by a call token.");
}

/**
 * Whether a client that follows a redirect to another host would send the proof there: it removes `Authorization`
 * (Fetch standard, HTTP-redirect fetch), and no other field.
 */
export function isProofCarried(rawHeaders: readonly string[], credential: Credential): boolean {
  const place = credential.kind === "header" && credential.name !== "authorization" ? credential.name : undefined;
  return fieldsOf(rawHeaders).some(([name]) => name === place || name.startsWith("x-relay-"));
}

/** The form of a call token. */
const TOKEN = /^[\w-]+\.[\w-]+\.[\w-]+$/;

/** The values where this provider's credential goes; for every provider `Authorization` is one of these places. */
function tokensIn(fields: HeaderPairs, credential: Credential): readonly string[] {
  const place = credential.kind === "header" ? credential.name : undefined;
  const texts: string[] = [];
  for (const [name, value] of fields) {
    if (name !== "authorization" && name !== place) continue;
    const [, scheme = "", rest = value] = /^([\w-]+) +(.*)$/s.exec(value) ?? [];
    const text = scheme.toLowerCase() === "basic" ? passwordOf(rest) : (signedToken(rest) ?? rest);
    if (text !== "") texts.push(text);
  }
  return texts;
}

/** The `oauth_token` of a signed OAuth 1.0 request (RFC 5849 section 3.5.1); undefined for any other field. */
function signedToken(field: string): string | undefined {
  const [, token] = /(?:^|[,\s])oauth_token="([^"]*)"/.exec(field) ?? [];
  return token === undefined ? undefined : decodePercent(token);
}

/** The password of Basic authentication (RFC 7617 section 2). */
function passwordOf(base64: string): string {
  const text = Buffer.from(base64, "base64").toString();
  return text.slice(text.indexOf(":") + 1);
}

/** Removes the credential's parameter from the query, and returns its values. */
function splitQuery(
  path: string,
  credential: Credential,
): { readonly path: string; readonly query: readonly string[] } {
  if (credential.kind !== "query") return { path, query: [] };
  const { path: without, taken } = takeParameter(path, credential.parameter);
  const texts = taken.map((part) => new URLSearchParams(part).values().next().value ?? "");
  return { path: without, query: texts.filter((text) => text !== "") };
}

/** Most redactors to cache: each has a few kilobytes, and creating one takes as long as a call. */
const MAX_MADE = 256;
/** Redactors by the hash of what they find. */
const made = new Map<string, Redactor>();

/**
 * The redactor for a caller's proof, cached since an SDK sends the same token with each request. Of a call token only
 * the signature is searched for: without it the token is worthless.
 */
function redactorFor({ proof: { callToken, privateKeys, userSignature = "" } }: PassedHead["caller"]): Redactor {
  const others = [...privateKeys.map(({ privateKey }) => privateKey), userSignature].filter(Boolean);
  const key = (callToken?.hash ?? "") + (others.length === 0 ? "" : hash("sha256", others.join(" "), "base64"));
  const known = made.get(key);
  if (known !== undefined) return known;
  const token = callToken?.text.reveal();
  const redactor = createRedactor(token === undefined ? others : [...others, token.slice(token.lastIndexOf(".") + 1)]);
  keepNewest(made, key, redactor, MAX_MADE);
  return redactor;
}

/** The fields to pass on; repeated ones are joined (RFC 9110 section 5.2). */
function forwarded(fields: HeaderPairs, credential: Credential, connection: string | undefined): HeaderPairs {
  const place = credential.kind === "header" ? headerMeant(credential.name) : undefined;
  const named = new Set(
    (connection ?? "")
      .toLowerCase()
      .split(",")
      .map((name) => name.trim()),
  );
  const kept = new Map<string, string>();
  for (const [name, value] of fields) {
    const meant = headerMeant(name);
    if (isDroppedHeader(meant) || named.has(name) || meant === place || meant.startsWith("x-relay-")) continue;
    const known = kept.get(name);
    kept.set(name, known === undefined ? value : `${known}, ${value}`);
  }
  return [...kept];
}

/** Refuses a request that has the proof in another place as well: the provider must not see it. */
function requireOnce(proofs: Redactor, path: string, headers: HeaderPairs): void {
  // One by one: nearly all are shorter than the proof, and cost nothing.
  if (proofs.text(path) === path && headers.flat().every((text) => proofs.text(text) === text)) return;
  throw new RelayError(
    "CALLER_NOT_ALLOWED",
    "The caller's credential is also in the URL or in a second header, where the provider would see it. Send it in one place only.",
  );
}
