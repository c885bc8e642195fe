import { hash as digest, timingSafeEqual } from "node:crypto";
import { uniqueObjectFrom } from "../json/json-slice.js";
import { Secret } from "../sealing/seal.js";
import { type Application, signText } from "./application.js";
import { type CallRule, parseCallRules, type WrittenRule, writtenFromRule } from "./call-rules.js";

/** What a call token says: who may call for whom, until when, and what. Times are seconds since the epoch. */
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

/** A call token as a request shows it, read and not yet verified. */
export interface ShownToken {
  readonly text: Secret;
  readonly token: CallToken;
  /** SHA-256 of the text. */
  readonly hash: string;
}

/** The longest lifetime of a call token, in seconds; an application may set less. */
export const MAX_CALL_TOKEN_SECONDS = 24 * 60 * 60;
/** How far clocks may be apart. */
const LEEWAY_SECONDS = 60;
/** Room for some fifty rules, in a header field that every server and proxy on the way takes. In characters. */
export const MAX_CALL_TOKEN_LENGTH = 4096;

const HEADER = { alg: "HS256", typ: "relay-call+jwt" } as const;
const AUDIENCE = "provider-call-relay";

/** Tokens that were verified: each with the sealed key hash that it was verified by, so that another key ends it. */
interface Remembered {
  readonly token: CallToken;
  /** Of its text. */
  readonly length: number;
  readonly privateKeyHash: Uint8Array;
}

/**
 * Of the texts of all of them, in characters: some five thousand usual tokens. One that makes room for others is verified
 * again, which takes microseconds.
 */
const MAX_REMEMBERED_LENGTH = 2 * 1024 * 1024;
let rememberedLength = 0;
/** By hash: what is kept of a token is worth nothing to whoever reads the memory. */
const remembered = new Map<string, Remembered>();

/** Whether what stands in the place of a private key is a call token: no private key has a dot. */
export function isCallToken(text: string): boolean {
  return text.includes(".");
}

/** Reads a call token; nothing of it is proven before {@link callTokenProblem} has judged it. */
export function readCallToken(text: string): ShownToken | { readonly problem: string } {
  if (text.length > MAX_CALL_TOKEN_LENGTH) return { problem: `it is longer than ${MAX_CALL_TOKEN_LENGTH} characters` };
  const hash = digest("sha256", text, "base64");
  const known = remembered.get(hash);
  const read = known ?? parseCallToken(text);
  return "problem" in read ? read : { text: new Secret(text), token: read.token, hash };
}

/** What verifying a token needs. */
export interface CallTokenVerification {
  readonly application: Pick<Application, "publicKey" | "privateKeyHash" | "maxCallTokenSeconds">;
  /** SHA-256 of the private key; asked for only when the token was not verified by this key before. */
  readonly privateKeyHash: () => Buffer;
  readonly userId: string;
  /** Milliseconds since the epoch. */
  readonly now: number;
}

/** What is wrong with a shown token, as one clause; undefined when it is this application's, for this user, now. */
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
  // One that is issued in the future would live longer than it may.
  if (Math.max(issuedAt, notBefore) - LEEWAY_SECONDS > seconds) return "it is not valid yet";
  return undefined;
}

/** The longest lifetime of an application's call tokens, in seconds. */
export function maxSecondsOf({ maxCallTokenSeconds }: Pick<Application, "maxCallTokenSeconds">): number {
  return maxCallTokenSeconds || MAX_CALL_TOKEN_SECONDS;
}

/** Whether a token is for a provider of these names. */
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

/** What a new token says. */
export interface NewCallToken extends Pick<CallToken, "publicKey" | "userId" | "providers" | "rules"> {
  /** Milliseconds since the epoch. */
  readonly now: number;
  readonly lifetimeSeconds: number;
}

/** Makes a call token, as any JWT library does from the private key. @param privateKeyHash SHA-256 of the private key. */
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
 * Takes a JWT in compact form apart (RFC 7515 section 3.1), strictly, as RFC 8725 asks for: one algorithm and one type,
 * whatever the header says of keys is not looked at, base64url has one spelling, and no object names a member twice.
 */
function parseCallToken(text: string): { readonly token: CallToken } | { readonly problem: string } {
  const [, header = "", payload = "", signature = ""] = SHAPE.exec(text) ?? [];
  if (header === "" || bytesFrom(signature) === undefined) return { problem: "it is no JWT signed with HS256" };
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
  // RFC 7519 section 4.1.3: a list of one says the same; one that is for others as well could be shown here by them.
  const isForUs = aud === AUDIENCE || (Array.isArray(aud) && aud.length === 1 && aud[0] === AUDIENCE);
  if (!isForUs) return { problem: `its aud must be ${AUDIENCE}, and nobody else` };
  if (!isTime(iat) || !isTime(exp)) return { problem: "its iat and exp must be numbers of seconds" };
  if (nbf !== undefined && !isTime(nbf)) return { problem: "its nbf must be a number of seconds" };
  if (providers !== undefined && !isNames(providers)) return { problem: "its providers must be a list of names" };
  const parsed = rules === undefined ? undefined : parseCallRules(rules);
  if (parsed !== undefined && "problem" in parsed) return { problem: `its rules claim ${parsed.problem}` };
  const times = { issuedAt: iat, expiresAt: exp, notBefore: nbf };
  return { token: { publicKey: iss, userId: sub, ...times, providers, rules: parsed?.rules } };
}

type Claims = Readonly<Record<string, unknown>>;

/** RFC 7519 section 2, NumericDate. */
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

/** Base64url without padding (RFC 7515 section 2); bits that stand for nothing must be zero, so that there is one spelling. */
function bytesFrom(base64url: string): Buffer | undefined {
  const bytes = Buffer.from(base64url, "base64url");
  return bytes.toString("base64url") === base64url ? bytes : undefined;
}
