import { timingSafeEqual } from "node:crypto";
import { createAddressMatcher } from "../lib/address-list.js";
import { formatError, RelayError } from "../model/errors.js";
import { type Application, type ApplicationStore, hashPrivateKey, signText } from "./application.js";
import { callTokenProblem, isCallToken, readCallToken, type ShownToken } from "./call-token.js";

/** The credentials that a caller sends; everything is untrusted text. Empty text is no proof. */
export interface CallerProof {
  /** Every private key in the request; all must be the application's. */
  readonly privateKeys: readonly ShownKey[];
  /** Replaces the private key, for one user and within rules. Its rules apply whatever else is sent. */
  readonly callToken: ShownToken | undefined;
  /** Lower-case hex HMAC-SHA256(private key, user id). */
  readonly userSignature: string | undefined;
  /** The `Origin` header of a browser. */
  readonly origin: string | undefined;
  /** Client address, after the trusted proxies. */
  readonly address: string;
}

/** A private key in a request. */
export interface ShownKey {
  /** Where it was found, in the caller's terms. */
  readonly place: "private_key" | "Authorization" | "x-partner-key";
  /** The public key next to it; undefined without one. */
  readonly publicKey: string | undefined;
  readonly privateKey: string;
}

/** Which rule refused a caller; a label for logs. */
type CallerRule = "origin" | "address" | "private-key" | "call-token" | "user-signature" | "proof-missing";

/** Whether the caller may call for this user. `message` is for the caller: it says what to send. */
type CallerDecision =
  | { readonly result: "allow" }
  | { readonly result: "deny"; readonly rule: CallerRule; readonly message: string };

const ALLOW: CallerDecision = { result: "allow" };
/** SHA-256 as hex. Upper case is refused, so that there is one spelling, as documented. */
const SIGNATURE = /^[0-9a-f]{64}$/;

/**
 * Checks where a call comes from and its proof. Stronger proof than `callerAuth` requires is accepted. Wrong proof is
 * refused even where none is required, or next to a correct one, so that mistakes are noticed before the level is
 * raised or a key is changed.
 */
export function decideCaller(
  options: Pick<CallerOptions, "openPrivateKeyHash" | "now">,
  application: Application,
  caller: Pick<Caller, "userId" | "proof">,
): CallerDecision {
  return decidePlace(application, caller.proof) ?? decideProof(options, application, caller) ?? ALLOW;
}

/** The strongest proof that the caller sends; a label. */
export function proofThatCounts({ privateKeys, callToken, userSignature }: CallerProof): string {
  if (privateKeys.some(({ privateKey }) => privateKey !== "")) return "private-key";
  if (callToken !== undefined) return "call-token";
  return userSignature ? "user-signature" : "public-key";
}

function decidePlace(
  { allowedOrigins, allowedAddresses }: Application,
  { origin, address }: CallerProof,
): CallerDecision | undefined {
  if (origin !== undefined && !allowedOrigins.includes(origin)) {
    return deny(
      "origin",
      "This browser origin is not on the application's list. Call from a server, or have the origin added.",
    );
  }
  if (allowedAddresses.length > 0 && !matcherOf(allowedAddresses)(address)) {
    return deny(
      "address",
      "This client address is not on the application's list. Call from a listed address, or have it added.",
    );
  }
  return undefined;
}

/** Cached per list object of an application: building a matcher of a thousand networks takes longer than a call. */
const matchers = new WeakMap<readonly string[], ReturnType<typeof createAddressMatcher>>();

function matcherOf(cidrs: readonly string[]): ReturnType<typeof createAddressMatcher> {
  let matcher = matchers.get(cidrs);
  if (matcher === undefined) {
    matcher = createAddressMatcher(cidrs);
    matchers.set(cidrs, matcher);
  }
  return matcher;
}

function decideProof(
  { openPrivateKeyHash, now }: Pick<CallerOptions, "openPrivateKeyHash" | "now">,
  application: Application,
  { userId, proof }: Pick<Caller, "userId" | "proof">,
): CallerDecision | undefined {
  const { userSignature, callToken } = proof;
  const stranger = proof.privateKeys.find(
    ({ publicKey = application.publicKey }) => publicKey !== application.publicKey,
  );
  if (stranger !== undefined) {
    return deny("private-key", `${stranger.place} must be public.private of the application that public_key names.`);
  }
  const privateKeyHash = () => openPrivateKeyHash(application);
  const shown = proof.privateKeys.filter(({ privateKey }) => privateKey !== "");
  const problem = callToken && callTokenProblem(callToken, { application, privateKeyHash, userId, now: now() });
  if (problem !== undefined) return deny("call-token", `The call token is not valid: ${problem}.`);
  if (shown.length === 0 && !userSignature) return callToken ? undefined : requireProof(application.callerAuth, false);
  const hash = privateKeyHash();
  const wrong = shown.find(({ privateKey }) => !timingSafeEqual(hashPrivateKey(privateKey), hash));
  if (wrong !== undefined) {
    return deny(
      "private-key",
      `The private key in ${wrong.place} is not this application's. Send the right key, or none if none is needed.`,
    );
  }
  if (userSignature && !isSignature(userSignature, hash, userId)) {
    return deny(
      "user-signature",
      "The user_signature does not match. It is HMAC-SHA256(private key, user_id) as 64 lower-case hex digits.",
    );
  }
  return shown.length > 0 || callToken ? undefined : requireProof(application.callerAuth, true);
}

/** Refuses a call without private key and call token if the application requires more. */
function requireProof(callerAuth: Application["callerAuth"], isSigned: boolean): CallerDecision | undefined {
  if (callerAuth === "PUBLIC_KEY") return undefined;
  if (callerAuth !== "SIGNED_USER") {
    return deny(
      "proof-missing",
      "This application requires its private key: send it as Authorization: Bearer, private_key in the query, or x-partner-key: public.private.",
    );
  }
  if (isSigned) return undefined;
  return deny(
    "proof-missing",
    "This application requires a signed user: send user_signature, which is HMAC-SHA256(private key, user_id) as 64 lower-case hex digits, or the private key.",
  );
}

function isSignature(text: string, privateKeyHash: Buffer, userId: string): boolean {
  return SIGNATURE.test(text) && timingSafeEqual(Buffer.from(text, "hex"), signText(privateKeyHash, userId));
}

function deny(rule: CallerRule, message: string): CallerDecision {
  return { result: "deny", rule, message };
}

/** Longest id or key, in UTF-16 code units (threats I19, T02). */
export const MAX_ID_LENGTH = 256;

/** Requires valid ids of application and user. Throws RelayError CALL_FORMAT_ERROR, which names the field. */
export function requireCallerIds({ publicKey, userId }: { readonly publicKey: string; readonly userId: string }): void {
  requireId(publicKey, "public_key");
  requireId(userId, "user_id");
}

function requireId(value: string, field: string): void {
  if (value === "") throw formatError(`${field} is missing.`);
  if (value.length > MAX_ID_LENGTH) {
    throw formatError(`${field} is longer than ${MAX_ID_LENGTH} characters.`);
  }
  // UTF-8 cannot encode a lone surrogate: two different ids would become the same bytes in the store.
  if (!value.isWellFormed()) throw formatError(`${field} is not well-formed Unicode.`);
}

/** What finding and checking a caller needs. */
export interface CallerOptions {
  readonly applications: Pick<ApplicationStore, "findByPublicKey">;
  /** Opens the sealed SHA-256 of an application's private key. */
  readonly openPrivateKeyHash: (application: Application) => Buffer;
  /** Milliseconds since the epoch. */
  readonly now: () => number;
}

/** Who calls, for which user, and with which proof; all untrusted text. */
interface Caller {
  readonly publicKey: string;
  readonly userId: string;
  readonly proof: CallerProof;
}

/** The active application of a public key. Rejects with RelayError INVALID_PUBLIC_KEY. */
export async function requireApplication(
  { applications }: Pick<CallerOptions, "applications">,
  { publicKey }: Pick<Caller, "publicKey">,
): Promise<Application> {
  return requireActive(await applications.findByPublicKey(publicKey));
}

/** Requires that an application was found and is active. Throws RelayError INVALID_PUBLIC_KEY. */
export function requireActive(application: Application | undefined): Application {
  if (isActive(application)) return application;
  throw new RelayError("INVALID_PUBLIC_KEY", "No active application has this public key. Check public_key.");
}

/** Whether an application was found and is not disabled. */
export function isActive(application: Application | undefined): application is Application {
  return application?.state === "ACTIVE";
}

/** Throws RelayError CALLER_NOT_ALLOWED, which says what to send, unless the caller may act for this user. */
export function requireAllowedCaller(
  options: Pick<CallerOptions, "openPrivateKeyHash" | "now">,
  application: Application,
  caller: Pick<Caller, "userId" | "proof">,
): void {
  const decision = decideCaller(options, application, caller);
  if (decision.result === "deny") throw new RelayError("CALLER_NOT_ALLOWED", decision.message);
}

/** The parts of a request, besides its query or message, that say who calls. */
export interface CallerFields {
  /** Every `Authorization` field, as written. node:http keeps only the first, behind which a wrong one could hide. */
  readonly authorization: readonly string[];
  /** Every `x-partner-key` field, as written. */
  readonly partnerKey: readonly string[];
  /** The `Origin` header of a browser. */
  readonly origin: string | undefined;
  /** Client address, after the trusted proxies. */
  readonly address: string;
}

/** Ids and keys from the query or message of a request; empty text counts as missing. */
export interface NamedKeys {
  readonly publicKey: string;
  readonly userId: string;
  readonly privateKey: string | undefined;
  readonly userSignature: string | undefined;
}

/** The head of an HTTP/1.1 or HTTP/2 request. */
interface RequestHead {
  readonly headers: Readonly<Record<string, string | string[] | undefined>> & { readonly origin?: string | undefined };
  /** Name, value, name, value, … as received. */
  readonly rawHeaders: readonly string[];
}

const NONE: readonly string[] = [];

/** Reads the caller's fields of a request, including gRPC metadata; the only place that does. */
export function callerFieldsOf({ headers, rawHeaders }: RequestHead, address: string): CallerFields {
  const all = (name: string) => (headers[name] === undefined ? NONE : valuesOf(rawHeaders, name));
  return { authorization: all("authorization"), partnerKey: all("x-partner-key"), origin: headers.origin, address };
}

/** The fields of a caller that sends no proof in them: an operator, or no request at all. */
export function withoutCallerFields(address: string): CallerFields {
  return { authorization: NONE, partnerKey: NONE, origin: undefined, address };
}

/**
 * Collects who calls, for whom, and every proof in the request: a private key in the query or message, in
 * `Authorization: Bearer` and in `x-partner-key: public.private`, which may also supply the public key. All of them
 * must be correct. The first two places may hold a call token instead, which itself names application and user.
 *
 * Throws RelayError CALLER_NOT_ALLOWED for a malformed call token, and for more than one.
 */
export function callerFrom(
  { authorization, partnerKey, origin, address }: CallerFields,
  { publicKey, userId, privateKey, userSignature }: NamedKeys,
): { readonly publicKey: string; readonly userId: string; readonly proof: CallerProof } {
  const partners = partnerKey.length === 0 ? NO_KEYS : partnerKey.map(parsePartnerKey);
  const privateKeys: ShownKey[] = [];
  const callTokens: string[] = [];
  const show = (place: ShownKey["place"], shown: string) => {
    if (isCallToken(shown)) callTokens.push(shown);
    else privateKeys.push({ place, publicKey: undefined, privateKey: shown });
  };
  if (privateKey) show("private_key", privateKey);
  for (const field of authorization) {
    const shown = bearerFrom(field);
    if (shown) show("Authorization", shown);
  }
  privateKeys.push(...partners);
  const callToken = callTokens.length === 0 ? undefined : readOnly(callTokens);
  return {
    publicKey: publicKey || partners[0]?.publicKey || callToken?.token.publicKey || "",
    userId: userId || callToken?.token.userId || "",
    proof: { privateKeys, callToken, userSignature: userSignature || undefined, origin, address },
  };
}

const NO_KEYS: readonly ShownKey[] = [];

function readOnly([shown = "", ...more]: readonly string[]): ShownToken {
  if (more.length > 0)
    throw new RelayError("CALLER_NOT_ALLOWED", "The call contains more than one call token. Send one.");
  const read = readCallToken(shown);
  if (!("problem" in read)) return read;
  throw new RelayError("CALLER_NOT_ALLOWED", `The call token is not valid: ${read.problem}.`);
}

function valuesOf(rawHeaders: readonly string[], wanted: string): readonly string[] {
  const values: string[] = [];
  for (let at = 0; at + 1 < rawHeaders.length; at += 2) {
    const name = rawHeaders[at] as string;
    if (name.length === wanted.length && name.toLowerCase() === wanted) values.push(rawHeaders[at + 1] as string);
  }
  return values;
}

/**
 * The credential of an `Authorization: Bearer` field (RFC 6750 section 2.1). The scheme is case-insensitive (RFC 9110
 * section 11.1). Whatever follows it counts as proof, whatever its characters. Other schemes are ignored: a proxy in
 * front may use them.
 */
export function bearerFrom(authorization: string): string | undefined {
  const scheme = /^Bearer +/i.exec(authorization)?.[0];
  return scheme && authorization.slice(scheme.length);
}

/**
 * Splits at the last dot: private keys have none, but a public key chosen by an operator may. Without a dot the public
 * key is empty.
 */
function parsePartnerKey(value: string): ShownKey {
  const dot = value.lastIndexOf(".");
  return { place: "x-partner-key", publicKey: value.slice(0, Math.max(dot, 0)), privateKey: value.slice(dot + 1) };
}
