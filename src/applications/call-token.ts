import { hash as digest, timingSafeEqual } from "node:crypto";
import { uniqueObjectFrom } from "../json/json-slice.js";
import { Secret } from "../sealing/seal.js";
import { type Application, signText } from "./application.js";
import { type CallRule, parseCallRules, type WrittenRule, writtenFromRule } from "./call-rules.js";

/** Claims of a call token: who may call for whom, until when, and what. Times are seconds since the epoch. */
export interface CallToken {
  /** `iss`: the application's public key. */
  readonly publicKey: string;
  /** `sub`. */
  readonly userId: string;
  readonly issuedAt: number;
  readonly expiresAt: number;
  readonly notBefore: number | undefined;
  /** Names or aliases; undefined: any provider. */
  readonly providers: readonly string[] | undefined;
  /** Undefined: any request. */
  readonly rules: readonly CallRule[] | undefined;
}

/** A call token from a request, parsed but not yet verified. */
export interface ShownToken {
  readonly text: Secret;
  readonly token: CallToken;
  /** SHA-256 of the text. */
  readonly hash: string;
}

/** Longest lifetime of a call token, in seconds; an application may set less. */
export const MAX_CALL_TOKEN_SECONDS = 24 * 60 * 60;
/** Accepted clock skew. */
const LEEWAY_SECONDS = 60;
/** In characters: room for about fifty rules, in a header field that every server and proxy on the way accepts. */
export const MAX_CALL_TOKEN_LENGTH = 4096;

const HEADER = { alg: "HS256", typ: "relay-call+jwt" } as const;
const AUDIENCE = "provider-call-relay";

/** A verified token, with the sealed key hash that verified it, so that a new private key invalidates it. */
interface Remembered {
  readonly token: CallToken;
  /** Length of its text. */
  readonly length: number;
  readonly privateKeyHash: Uint8Array;
}

/**
 * Total length of the cached tokens' texts, in characters: about five thousand typical tokens. An evicted token is
 * verified again, which takes microseconds.
 */
const MAX_REMEMBERED_LENGTH = 2 * 1024 * 1024;
let rememberedLength = 0;
/** Keyed by hash, so that what is cached of a token is useless to anybody who reads the memory. */
const remembered = new Map<string, Remembered>();

/** Whether the text in the place of a private key is a call token: private keys have no dot. */
export function isCallToken(text: string): boolean {
  return text.includes(".");
}

/** Parses a call token. Its claims are unproven until {@link callTokenProblem} has checked them. */
export function readCallToken(text: string): ShownToken | { readonly problem: string } {
  if (text.length > MAX_CALL_TOKEN_LENGTH) return { problem: `it is longer than ${MAX_CALL_TOKEN_LENGTH} characters` };
  const hash = digest("sha256", text, "base64");
  const known = remembered.get(hash);
  const read = known ?? parseCallToken(text);
  return "problem" in read ? read : { text: new Secret(text), token: read.token, hash };
}

/** Options for verifying a token. */
export interface CallTokenVerification {
  readonly application: Pick<Application, "publicKey" | "privateKeyHash" | "maxCallTokenSeconds">;
  /** Returns SHA-256 of the private key; called only if the token was not verified with this key before. */
  readonly privateKeyHash: () => Buffer;
  readonly userId: string;
  /** Milliseconds since the epoch. */
  readonly now: number;
}

/** What is wrong with a token, as one clause; undefined if it is valid now for this application and user. */
export function callTokenProblem(shown: ShownToken, verification: CallTokenVerification): string | undefined {
  const { application, userId, now } = verification;
  const { publicKey, issuedAt, expiresAt, notBefore = issuedAt, userId: subject } = shown.token;
  if (publicKey !== application.publicKey) return "its iss is not the public_key of the call";
  if (!isSigned(shown, verification)) return "it is not signed with this application's private key";
  if (subject !== userId) return "its sub is not the user_id of the call";
  const lifetime = expiresAt - issuedAt;
  const maxSeconds = maxSecondsOf(application);
  if (lifetime <= 0 || lifetime > maxSeconds) return `its exp must be at most ${maxSeconds} seconds after its iat`;
  const seconds = now / 1000;
  if (expiresAt + LEEWAY_SECONDS <= seconds) return "it has expired";
  // A token issued in the future would live longer than allowed.
  if (Math.max(issuedAt, notBefore) - LEEWAY_SECONDS > seconds) return "it is not valid yet";
  return undefined;
}

/** The longest lifetime of an application's call tokens, in seconds. */
export function maxSecondsOf({ maxCallTokenSeconds }: Pick<Application, "maxCallTokenSeconds">): number {
  return maxCallTokenSeconds || MAX_CALL_TOKEN_SECONDS;
}

/** Whether a token may be used for a provider with these names. */
export function isForProvider(token: CallToken | undefined, names: readonly string[]): boolean {
  return token?.providers?.some((name) => names.includes(name)) ?? true;
}

function isSigned(shown: ShownToken, { application, privateKeyHash }: CallTokenVerification): boolean {
  const known = remembered.get(shown.hash);
  if (known !== undefined && isSame(known.privateKeyHash, application.privateKeyHash)) return true;
  const text = shown.text.reveal();
  const dot = text.lastIndexOf(".");
  const signature = Buffer.from(text.slice(dot + 1), "base64url");
  const isRight = timingSafeEqual(signature, signText(privateKeyHash(), text.slice(0, dot)));
  const { token, hash } = shown;
  if (isRight) remember(hash, { token, length: text.length, privateKeyHash: application.privateKeyHash });
  return isRight;
}

function isSame(one: Uint8Array, other: Uint8Array): boolean {
  return one === other || Buffer.compare(one, other) === 0;
}

function remember(hash: string, verified: Remembered): void {
  forget(hash);
  remembered.set(hash, verified);
  rememberedLength += verified.length;
  while (rememberedLength > MAX_REMEMBERED_LENGTH) forget(remembered.keys().next().value as string);
}

function forget(hash: string): void {
  rememberedLength -= remembered.get(hash)?.length ?? 0;
  remembered.delete(hash);
}

/** Claims of a new token. */
export interface NewCallToken extends Pick<CallToken, "publicKey" | "userId" | "providers" | "rules"> {
  /** Milliseconds since the epoch. */
  readonly now: number;
  readonly lifetimeSeconds: number;
}

/**
 * Creates a call token, the same as any JWT library would with the private key.
 *
 * @param privateKeyHash SHA-256 of the private key.
 */
export function createCallToken(
  { publicKey, userId, providers, rules, now, lifetimeSeconds }: NewCallToken,
  privateKeyHash: Uint8Array,
): { readonly callToken: string; readonly expiresAt: number } {
  const iat = Math.floor(now / 1000);
  const exp = iat + lifetimeSeconds;
  const written: readonly WrittenRule[] | undefined = rules?.map(writtenFromRule);
  const claims = { iss: publicKey, sub: userId, aud: AUDIENCE, iat, exp, providers, rules: written };
  const signed = [HEADER, claims].map((part) => Buffer.from(JSON.stringify(part)).toString("base64url")).join(".");
  return {
    callToken: `${signed}.${signText(privateKeyHash, signed).toString("base64url")}`,
    expiresAt: exp * 1000,
  };
}

const SHAPE = /^([\w-]+)\.([\w-]+)\.([\w-]{43})$/;

/**
 * Parses a JWT in compact form (RFC 7515 section 3.1), strictly, as RFC 8725 recommends. Only one algorithm and one
 * type are accepted, keys in the header are ignored, base64url has only one spelling, and duplicate members are
 * refused.
 */
function parseCallToken(text: string): { readonly token: CallToken } | { readonly problem: string } {
  const [, header = "", payload = "", signature = ""] = SHAPE.exec(text) ?? [];
  if (header === "" || bytesFrom(signature) === undefined) return { problem: "it is not a JWT signed with HS256" };
  const { alg, typ, ...others } = objectFrom(header) ?? {};
  if (alg !== HEADER.alg) return { problem: "its alg must be HS256" };
  if (typ !== HEADER.typ) return { problem: "its typ must be relay-call+jwt" };
  if ("crit" in others) return { problem: "its header must not have crit" };
  const claims = objectFrom(payload);
  return claims === undefined ? { problem: "its claims are not one JSON object" } : tokenFrom(claims);
}

function tokenFrom(claims: Claims): { readonly token: CallToken } | { readonly problem: string } {
  const { iss, sub, aud, iat, exp, nbf, providers, rules } = claims;
  if (typeof iss !== "string" || iss === "") return { problem: "its iss must be the application's public key" };
  if (typeof sub !== "string" || sub === "") return { problem: "its sub must be the user's id" };
  // RFC 7519 section 4.1.3: a list of one means the same. A token with further audiences could be replayed here by
  // them.
  const isForUs = aud === AUDIENCE || (Array.isArray(aud) && aud.length === 1 && aud[0] === AUDIENCE);
  if (!isForUs) return { problem: `its aud must be ${AUDIENCE} and nothing else` };
  if (!isTime(iat) || !isTime(exp)) return { problem: "its iat and exp must be numbers of seconds" };
  if (nbf !== undefined && !isTime(nbf)) return { problem: "its nbf must be a number of seconds" };
  if (providers !== undefined && !isNames(providers)) return { problem: "its providers must be a list of names" };
  const parsed = rules === undefined ? undefined : parseCallRules(rules);
  if (parsed !== undefined && "problem" in parsed) return { problem: `its rules claim ${parsed.problem}` };
  const times = { issuedAt: iat, expiresAt: exp, notBefore: nbf };
  return { token: { publicKey: iss, userId: sub, ...times, providers, rules: parsed?.rules } };
}

type Claims = Readonly<Record<string, unknown>>;

/** A NumericDate (RFC 7519 section 2). */
function isTime(value: unknown): value is number {
  return typeof value === "number";
}

function isNames(value: unknown): value is readonly string[] {
  return Array.isArray(value) && value.length > 0 && value.every((name) => typeof name === "string" && name !== "");
}

const JSON_LIMITS = { maxDepth: 8, maxKeys: 1000 } as const;

function objectFrom(base64url: string): Claims | undefined {
  const bytes = bytesFrom(base64url);
  return bytes && uniqueObjectFrom(bytes, JSON_LIMITS);
}

/**
 * Decodes base64url without padding (RFC 7515 section 2). Unused bits must be zero, so that there is only one spelling.
 */
function bytesFrom(base64url: string): Buffer | undefined {
  const bytes = Buffer.from(base64url, "base64url");
  return bytes.toString("base64url") === base64url ? bytes : undefined;
}
