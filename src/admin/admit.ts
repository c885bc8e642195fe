import { createHash, createHmac, randomBytes, timingSafeEqual } from "node:crypto";
import { existsSync } from "node:fs";
import { readFile } from "node:fs/promises";
import { createContextKey } from "@connectrpc/connect";
import { clientNetworkOf, type HttpRequest } from "../http/exchange.js";
import { keepNewest } from "../lib/keep-newest.js";
import { codeOf, createSecretFile } from "../lib/secret-file.js";
import type { Session, SessionStore } from "../model/audit.js";
import { isRefusedByStore } from "../model/errors.js";

/** A request that is not admitted. */
export interface Refused {
  readonly isAdmitted: false;
  /** Seconds until the next attempt is considered; 0 for at once. */
  readonly waitSeconds: number;
  /** The store cannot tell at the moment whether the session was ended. */
  readonly isUnknown?: true;
}

/**
 * Authenticates a request to the administration port. Rejects only with faults; an unavailable store gives `isUnknown`.
 */
export type Admit = (
  request: HttpRequest,
) => Promise<{ readonly isAdmitted: true; readonly operator: Operator } | Refused>;

/** Options of {@link createAdmit}. */
interface AdmitOptions {
  readonly authenticate: Authenticate;
  readonly sessions: Pick<SessionStore, "isEnded">;
  readonly clientAddress: (request: HttpRequest) => string;
  /** Milliseconds of a monotonic clock. */
  readonly now: () => number;
}

/** Wrong tokens allowed per client and minute: a metrics scraper with an old token sends four. */
export const MAX_WRONG_TOKENS = 60;

/**
 * Creates the authentication check with a rate limit. A client that has sent too many wrong tokens is refused with 429
 * for the rest of that minute, whatever it sends, so that nobody can guess a weak token that an operator chose.
 *
 * Requests without a token do not count: any web page can make an operator's browser send those. Nor do expired or
 * ended sessions, which open tabs keep sending. A session with a wrong signature counts, since signatures are made from
 * tokens.
 */
export function createAdmit({ authenticate, sessions, clientAddress, now }: AdmitOptions): Admit {
  const wrongTokens = createAttempts(MAX_WRONG_TOKENS, now);
  return async (request) => {
    if (request.headers.authorization === undefined) return { isAdmitted: false, waitSeconds: 0 };
    const client = clientNetworkOf(clientAddress(request));
    const waitSeconds = wrongTokens.waitSeconds(client);
    if (waitSeconds > 0) return { isAdmitted: false, waitSeconds };
    const operator = authenticate(request);
    if (operator === undefined) wrongTokens.add(client);
    if (operator === undefined || operator === "over") return { isAdmitted: false, waitSeconds: 0 };
    const isEnded = operator.session !== undefined && (await isEndedIn(sessions, operator.session));
    if (isEnded === undefined) return { isAdmitted: false, waitSeconds: 0, isUnknown: true };
    return isEnded ? { isAdmitted: false, waitSeconds: 0 } : { isAdmitted: true, operator };
  };
}

/** Undefined when the store cannot be read at the moment. */
function isEndedIn(sessions: Pick<SessionStore, "isEnded">, { id }: Session): Promise<boolean | undefined> {
  return sessions.isEnded(id).catch((error: unknown) => {
    if (!isRefusedByStore(error)) throw error;
    return undefined;
  });
}

/**
 * The operator who sent a request to the administration port. Undefined without a token or with an unknown one. `over`
 * for an expired session, or one in an outdated form: its signature is not checked, so it is not a guess.
 */
export type Authenticate = (request: Pick<HttpRequest, "headers">) => Operator | "over" | undefined;

/** RFC 6750 section 2.1; the scheme is case-insensitive (RFC 9110 section 11.1). */
const BEARER = /^Bearer +([A-Za-z0-9\-._~+/]+=*)$/i;

/**
 * Creates the check of `Authorization: Bearer`: an admin token, or a session. It compares hashes in constant time, and
 * always all of them, so that timing reveals nothing about a token. Tokens are too long to guess: see TOKEN below.
 *
 * @param now milliseconds since the epoch.
 */
export function createAuthenticate(tokens: readonly AdminToken[], now: () => number = Date.now): Authenticate {
  return ({ headers }) => {
    const token = bearerOf(headers);
    if (token === undefined) return undefined;
    const admin = adminTokenOf(tokens, token);
    if (admin !== undefined) return { name: admin.name, role: admin.role };
    const session = SESSION.exec(token);
    if (session === null) return undefined;
    const [, endsAt = "", id, signature = ""] = session;
    if (id === undefined || now() >= Number(endsAt)) return "over";
    const signed = Buffer.from(signature, "base64url");
    let found: AdminToken | undefined;
    for (const each of tokens) {
      if (timingSafeEqual(signatureOf(each, sessionText(endsAt, id)), signed)) found = each;
    }
    return found && { name: found.name, role: found.role, session: { id, endsAt: Number(endsAt) } };
  };
}

/** The bearer token of a request; undefined if there is none. */
export function bearerOf({ authorization = "" }: HttpRequest["headers"]): string | undefined {
  return BEARER.exec(authorization)?.[1];
}

/** The admin token with this text; undefined for any other text, a session included. */
export function adminTokenOf(tokens: readonly AdminToken[], token: string): AdminToken | undefined {
  const hash = hashAdminToken(token);
  let found: AdminToken | undefined;
  for (const each of tokens) if (timingSafeEqual(each.hash, hash)) found = each;
  return found;
}

/** Lifetime of a session: a working day. */
const SESSION_MS = 12 * 60 * 60_000;
/** Sessions of older builds have no id. */
const SESSION = /^relay_session_(\d{1,15})\.(?:([A-Za-z0-9_-]{22})\.)?([A-Za-z0-9_-]{43})$/;

/**
 * Creates the session that a signed-in browser sends in place of the admin token. It ends when it expires, when its
 * operator signs out, or when the admin token is removed. Every process with the token file accepts it; only ended
 * sessions are stored.
 */
export function createSession(token: AdminToken, now: number): string {
  const endsAt = String(now + SESSION_MS);
  const id = randomBytes(16).toString("base64url");
  return `relay_session_${endsAt}.${id}.${signatureOf(token, sessionText(endsAt, id)).toString("base64url")}`;
}

function sessionText(endsAt: string, id: string): string {
  return `relay console session ${id} until ${endsAt}`;
}

/** HMAC of a text with a token's hash, which is known only to those who can read the token file. 32 bytes. */
export function signatureOf({ hash }: AdminToken, text: string): Buffer {
  return createHmac("sha256", hash).update(text).digest();
}

/** A rate limiter: counts attempts per key, in windows of a minute that begin with the first attempt. */
interface Attempts {
  /** Whole seconds until another attempt is allowed; 0 if it is allowed now. */
  waitSeconds(whose: string): number;
  add(whose: string): void;
}

const WINDOW_MS = 60_000;
/** Most keys counted at once, some hundred bytes each. Beyond that the oldest are evicted. */
const MAX_KEPT = 10_000;

/**
 * Not the limiter of calls: the answer is needed before a body is read, and memory must be bounded whoever sends
 * requests, while that one answers later and keeps every key for its minute. Each process counts for itself.
 *
 * @param max attempts per key and minute.
 * @param now milliseconds of a monotonic clock.
 */
export function createAttempts(max: number, now: () => number): Attempts {
  const kept = new Map<string, { count: number; readonly endsAt: number }>();
  return {
    waitSeconds(whose) {
      const attempts = kept.get(whose);
      if (attempts === undefined || attempts.count < max) return 0;
      return Math.max(0, Math.ceil((attempts.endsAt - now()) / 1000));
    },
    add(whose) {
      const attempts = kept.get(whose);
      if (attempts !== undefined && now() < attempts.endsAt) {
        attempts.count += 1;
        return;
      }
      keepNewest(kept, whose, { count: 1, endsAt: now() + WINDOW_MS }, MAX_KEPT);
    },
  };
}

/** One admin token: its operator and its SHA-256. The token itself is not kept. */
export interface AdminToken extends Operator {
  readonly hash: Buffer;
}

/** A token file that cannot be used. The message names file and line, never content. */
class AdminTokenFileError extends Error {
  constructor(path: string, problem: string, options?: { cause?: unknown }) {
    super(`Token file ${path}: ${problem}`, options);
    this.name = "AdminTokenFileError";
  }
}

const ROLES: readonly Role[] = ["read-only", "operator"];
/** No colon: the audit trail marks users of the command line with `cli:`. */
const NAME = /^[A-Za-z0-9._@-]{1,64}$/;
/** b64token of RFC 6750 section 2.1. At least 32 characters (192 bits in base64), which cannot be guessed. */
const TOKEN = /^(?=.{32,256}$)[A-Za-z0-9\-._~+/]+=*$/;

/**
 * Parses a token file: one `NAME ROLE TOKEN` per line. Skips blank lines and lines that start with `#`. Several tokens
 * may share a name, so that one can replace the other. `path` is only for messages.
 */
export function parseTokenFile(text: string, path: string): readonly AdminToken[] {
  const tokens = new Map<string, AdminToken>();
  for (const [index, line] of text.split(/\r?\n/).entries()) {
    if (line.trim() === "" || line.trimStart().startsWith("#")) continue;
    const token = parseLine(line);
    if (typeof token === "string") throw new AdminTokenFileError(path, `line ${index + 1}: ${token}`);
    const key = token.hash.toString("hex");
    if (tokens.has(key)) {
      throw new AdminTokenFileError(path, `line ${index + 1}: this token is also on an earlier line`);
    }
    tokens.set(key, token);
  }
  if (tokens.size === 0) throw new AdminTokenFileError(path, "has no token; a line is NAME ROLE TOKEN");
  return [...tokens.values()];
}

/** Text of a new token file: one operator with a new random token. */
export function createTokenFileText(): string {
  return `# NAME ROLE TOKEN, one per line; ROLE is read-only or operator\noperator operator ${createAdminToken()}\n`;
}

/** SHA-256 of a token. */
export function hashAdminToken(token: string): Buffer {
  return createHash("sha256").update(token).digest();
}

/** `relay_admin_` and 32 random bytes in base64url. */
function createAdminToken(): string {
  return `relay_admin_${randomBytes(32).toString("base64url")}`;
}

/** The token of one line, or what is wrong with it. */
function parseLine(line: string): AdminToken | string {
  const [name = "", role = "", token = "", ...more] = line.trim().split(/[ \t]+/);
  if (token === "" || more.length > 0) return "must be NAME ROLE TOKEN";
  if (!NAME.test(name)) return "the name must be 1 to 64 letters, digits, '.', '_', '@' or '-'";
  const known = ROLES.find((each) => each === role);
  if (known === undefined) return `the role must be one of ${ROLES.join(", ")}`;
  if (!TOKEN.test(token)) return "the token must be 32 to 256 letters, digits, '-', '.', '_', '~', '+' or '/'";
  return { name, role: known, hash: hashAdminToken(token) };
}

/** How to load a token file. */
export interface TokenFileOptions {
  /** Reject when there is no file, instead of creating one with a new token: for production, as with the key file. */
  readonly mustExist: boolean;
  /** Called when this process has created the file. */
  readonly onCreated: () => void;
}

/** Loads the admin tokens. Rejects with AdminTokenFileError when the file is missing, malformed or unreadable. */
export async function loadAdminTokens(
  path: string,
  { mustExist, onCreated }: TokenFileOptions,
): Promise<readonly AdminToken[]> {
  if (!mustExist && !existsSync(path) && (await createOrThrow(path))) onCreated();
  return parseTokenFile(await readText(path), path);
}

async function createOrThrow(path: string): Promise<boolean> {
  try {
    return await createSecretFile(path, createTokenFileText());
  } catch (cause) {
    throw new AdminTokenFileError(path, `cannot be created (${codeOf(cause)}); check RELAY_ADMIN_TOKEN_FILE`, {
      cause,
    });
  }
}

async function readText(path: string): Promise<string> {
  try {
    return await readFile(path, "utf8");
  } catch (cause) {
    const code = codeOf(cause);
    const problem =
      code === "ENOENT"
        ? "does not exist; create it, check RELAY_ADMIN_TOKEN_FILE, or set RELAY_ADMIN_LISTEN=off (with NODE_ENV=production it is never created)"
        : `cannot be read (${code}); check RELAY_ADMIN_TOKEN_FILE`;
    throw new AdminTokenFileError(path, problem, { cause });
  }
}

/** What an operator may do: `read-only` sees everything, `operator` may also change it. */
export type Role = "read-only" | "operator";

/** The holder of an admin token. */
export interface Operator {
  /** The token's name in the token file; the audit trail shows it. */
  readonly name: string;
  readonly role: Role;
  /** The browser's session; undefined when the request carried the token itself. */
  readonly session?: Session;
}

/** Context key under which services of the administration port find the operator. */
export const operatorContextKey = createContextKey<Operator | undefined>(undefined);
