import { timingSafeEqual } from "node:crypto";
import { createAddressMatcher } from "../lib/address-list.js";
import { formatError, RelayError } from "../model/errors.js";
import { type Application, type ApplicationStore, hashPrivateKey, signText } from "./application.js";
import { callTokenProblem, isCallToken, readCallToken, type ShownToken } from "./call-token.js";

/** What a caller shows to prove who it is; everything is untrusted text. Empty text is no proof. */
export interface CallerProof {
  /** Every private key that the request shows; all of them have to be the application's. */
  readonly privateKeys: readonly ShownKey[];
  /** What stands for the private key, for one user and within rules; its rules count whatever else is shown. */
  readonly callToken: ShownToken | undefined;
  /** Lower-case hex HMAC-SHA256(private key, user id). */
  readonly userSignature: string | undefined;
  /** The `Origin` header of a browser. */
  readonly origin: string | undefined;
  /** The client's IP address, after trusted proxies were taken into account. */
  readonly address: string;
}

/** A private key as a request shows it. */
export interface ShownKey {
  /** Where it stands, in the caller's words. */
  readonly place: "private_key" | "Authorization" | "x-partner-key";
  /** The public key that is written beside it; undefined where none is. */
  readonly publicKey: string | undefined;
  readonly privateKey: string;
}

/** What `decideCaller()` judges. */
export interface CallerInput {
  readonly application: Pick<
    Application,
    "publicKey" | "privateKeyHash" | "maxCallTokenSeconds" | "callerAuth" | "allowedOrigins" | "allowedAddresses"
  >;
  readonly userId: string;
  readonly proof: CallerProof;
  /** SHA-256 of the private key; asked for at most once, and only when the caller shows a key or a signature. */
  readonly privateKeyHash: () => Buffer;
  /** Milliseconds since the epoch. */
  readonly now: number;
}

/** Which rule refused a caller; a label for logs. */
type CallerRule = "origin" | "address" | "private-key" | "call-token" | "user-signature" | "proof-missing";

/** Whether the caller may call for this user. `message` is for the caller: it says what to send. */
type CallerDecision =
  | { readonly result: "allow" }
  | { readonly result: "deny"; readonly rule: CallerRule; readonly message: string };

const ALLOW: CallerDecision = { result: "allow" };
/** SHA-256 as hex; upper case is refused so that there is one spelling, as documented. */
const SIGNATURE = /^[0-9a-f]{64}$/;

/**
 * Judges where a call comes from and what it shows. Stronger proof than `callerAuth` asks for is accepted; proof that
 * is shown and wrong is refused even where none is needed, and beside one that is right, so that a mistake is noticed
 * before the level is raised or a key is changed.
 */
export function decideCaller(input: CallerInput): CallerDecision {
  return decidePlace(input) ?? decideProof(input) ?? ALLOW;
}

/** By what the caller is who it says it is: the strongest proof that it shows. */
export function proofThatCounts({ privateKeys, callToken, userSignature }: CallerProof): string {
  if (privateKeys.some(({ privateKey }) => privateKey !== "")) return "private-key";
  if (callToken !== undefined) return "call-token";
  return userSignature ? "user-signature" : "public-key";
}

function decidePlace({ application, proof }: CallerInput): CallerDecision | undefined {
  if (proof.origin !== undefined && !application.allowedOrigins.includes(proof.origin)) {
    return deny(
      "origin",
      "This browser origin is not on the application's list. Call from a server, or have the origin added.",
    );
  }
  const { allowedAddresses } = application;
  if (allowedAddresses.length > 0 && !matcherOf(allowedAddresses)(proof.address)) {
    return deny(
      "address",
      "This client address is not on the application's list. Call from a listed address, or have it added.",
    );
  }
  return undefined;
}

/** By the list of an application as it was read: building one of a thousand networks takes longer than a call. */
const matchers = new WeakMap<readonly string[], ReturnType<typeof createAddressMatcher>>();

function matcherOf(cidrs: readonly string[]): ReturnType<typeof createAddressMatcher> {
  let matcher = matchers.get(cidrs);
  if (matcher === undefined) {
    matcher = createAddressMatcher(cidrs);
    matchers.set(cidrs, matcher);
  }
  return matcher;
}

function decideProof(input: CallerInput): CallerDecision | undefined {
  const { application, userId, proof } = input;
  const { userSignature, callToken } = proof;
  const stranger = proof.privateKeys.find(
    ({ publicKey = application.publicKey }) => publicKey !== application.publicKey,
  );
  if (stranger !== undefined) {
    return deny("private-key", `${stranger.place} must be public.private of the application that public_key names.`);
  }
  const shown = proof.privateKeys.filter(({ privateKey }) => privateKey !== "");
  const problem = callToken && callTokenProblem(callToken, input);
  if (problem !== undefined) return deny("call-token", `The call token is not valid: ${problem}.`);
  if (shown.length === 0 && !userSignature) return callToken ? undefined : requireProof(application.callerAuth, false);
  const hash = input.privateKeyHash();
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

/** What is missing when neither a private key nor a call token was shown. */
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

/** Ids and keys; nothing longer is one (threats I19, T02). In UTF-16 code units. */
export const MAX_ID_LENGTH = 256;

/** What everything done for a user must name. Throws RelayError CALL_FORMAT_ERROR that names the field. */
export function requireCallerIds({ publicKey, userId }: { readonly publicKey: string; readonly userId: string }): void {
  requireId(publicKey, "public_key");
  requireId(userId, "user_id");
}

function requireId(value: string, field: string): void {
  if (value === "") throw formatError(`${field} is missing.`);
  if (value.length > MAX_ID_LENGTH) {
    throw formatError(`${field} is longer than ${MAX_ID_LENGTH} characters.`);
  }
  // UTF-8 cannot hold a lone surrogate: two different ids would become the same bytes in the store.
  if (!value.isWellFormed()) throw formatError(`${field} is not well-formed Unicode.`);
}

/** What finding and judging a caller needs. */
export interface CallerOptions {
  readonly applications: Pick<ApplicationStore, "findByPublicKey">;
  /** Opens the sealed SHA-256 of an application's private key. */
  readonly openPrivateKeyHash: (application: Application) => Buffer;
  /** Milliseconds since the epoch. */
  readonly now: () => number;
}

/** Who calls, for which user, and how they prove it; all of it untrusted text. */
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

/** Judges what was found under a public key. Throws RelayError INVALID_PUBLIC_KEY. */
export function requireActive(application: Application | undefined): Application {
  if (isActive(application)) return application;
  throw new RelayError("INVALID_PUBLIC_KEY", "No active application has this public key. Check public_key.");
}

/** Whether an application was found, and is not disabled. */
export function isActive(application: Application | undefined): application is Application {
  return application?.state === "ACTIVE";
}

/** Throws RelayError CALLER_NOT_ALLOWED, which says what to send, unless the caller may act for this user. */
export function requireAllowedCaller(
  options: Pick<CallerOptions, "openPrivateKeyHash" | "now">,
  application: Application,
  caller: Pick<Caller, "userId" | "proof">,
): void {
  const decision = judgeCaller(options, application, caller);
  if (decision.result === "deny") throw new RelayError("CALLER_NOT_ALLOWED", decision.message);
}

/** Decides whether the caller may act for this user. */
export function judgeCaller(
  { openPrivateKeyHash, now }: Pick<CallerOptions, "openPrivateKeyHash" | "now">,
  application: Application,
  { userId, proof }: Pick<Caller, "userId" | "proof">,
): CallerDecision {
  const privateKeyHash = () => openPrivateKeyHash(application);
  return decideCaller({ application, userId, proof, privateKeyHash, now: now() });
}

/** What of a request, beside its query or message, says who calls. */
export interface CallerFields {
  /** Every `Authorization` field, as written: node:http keeps the first alone, and a wrong one must not hide behind it. */
  readonly authorization: readonly string[];
  /** Every `x-partner-key` field, as written. */
  readonly partnerKey: readonly string[];
  /** The `Origin` header of a browser. */
  readonly origin: string | undefined;
  /** The client's IP address, after trusted proxies were taken into account. */
  readonly address: string;
}

/** What the query or the message of a request names; empty text is nothing. */
export interface NamedKeys {
  readonly publicKey: string;
  readonly userId: string;
  readonly privateKey: string | undefined;
  readonly userSignature: string | undefined;
}

/** The head of a request, of HTTP/1.1 or HTTP/2. */
interface RequestHead {
  readonly headers: Readonly<Record<string, string | string[] | undefined>> & { readonly origin?: string | undefined };
  /** Names and values in turn, as received. */
  readonly rawHeaders: readonly string[];
}

const NONE: readonly string[] = [];

/** Reads the fields of a request, gRPC metadata among them; the only place that does. */
export function callerFieldsOf({ headers, rawHeaders }: RequestHead, address: string): CallerFields {
  const all = (name: string) => (headers[name] === undefined ? NONE : valuesOf(rawHeaders, name));
  return { authorization: all("authorization"), partnerKey: all("x-partner-key"), origin: headers.origin, address };
}

/** Of a request whose fields prove nothing of an application: an operator's, or none at all. */
export function withoutCallerFields(address: string): CallerFields {
  return { authorization: NONE, partnerKey: NONE, origin: undefined, address };
}

/**
 * Who calls, for whom, and every proof that the request shows: a private key in the query or message, in
 * `Authorization: Bearer` and in `x-partner-key: public.private`, which may also stand for the public key. Each of them
 * has to be right. In the first two places may stand a call token instead, which names application and user itself.
 *
 * Throws RelayError CALLER_NOT_ALLOWED for a call token that cannot be read, and for a second one.
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
  if (more.length > 0) throw new RelayError("CALLER_NOT_ALLOWED", "The call shows two call tokens. Send one.");
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
 * RFC 6750 section 2.1; the scheme's case does not matter (RFC 9110 section 11.1). What stands behind it is a proof
 * whatever its characters are. Another scheme is none of ours: a proxy in front may ask for it.
 */
export function bearerFrom(authorization: string): string | undefined {
  const scheme = /^Bearer +/i.exec(authorization)?.[0];
  return scheme && authorization.slice(scheme.length);
}

/** The last dot parts the keys: a private key has none, a public key an operator chose may. Without a dot it names nobody. */
function parsePartnerKey(value: string): ShownKey {
  const dot = value.lastIndexOf(".");
  return { place: "x-partner-key", publicKey: value.slice(0, Math.max(dot, 0)), privateKey: value.slice(dot + 1) };
}
