import { createHash, createHmac, randomBytes, timingSafeEqual } from "node:crypto";
import { existsSync } from "node:fs";
import { readFile } from "node:fs/promises";
import { createContextKey } from "@connectrpc/connect";
import { clientNetworkOf, type HttpRequest } from "../http/exchange.js";
import { codeOf, createSecretFile } from "../lib/secret-file.js";
import type { Session, SessionStore } from "../model/audit.js";
import { isRefusedByStore } from "../model/errors.js";

/** Why somebody may not go on. */
export interface Refused {
  readonly isAdmitted: false;
  /** Until the next try is looked at; 0 for at once. */
  readonly waitSeconds: number;
  /** It cannot be known now whether the session was ended. */
  readonly isUnknown?: true;
}

/** Judges the sender of a request to the administration port. Rejects with faults alone: a store that refuses makes it unknown. */
export type Admit = (
  request: HttpRequest,
) => Promise<{ readonly isAdmitted: true; readonly operator: Operator } | Refused>;

/** What admitting needs. */
interface AdmitOptions {
  readonly authenticate: Authenticate;
  readonly sessions: Pick<SessionStore, "isEnded">;
  readonly clientAddress: (request: HttpRequest) => string;
  /** Milliseconds of a clock that never goes back. */
  readonly now: () => number;
}

/** Of one client in a minute: a scraper with an old token sends four. */
export const MAX_WRONG_TOKENS = 60;

/**
 * Creates the judge. A client that has sent too many wrong tokens is refused with 429 for the rest of that minute, whatever
 * it sends, so that nobody goes through tokens that an operator chose badly. Requests without a token are no tries: any web
 * page can make an operator's browser send those. Nor are sessions that are over, which open tabs go
 * on sending; one with a wrong signature is, since signatures are made of tokens.
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

/** Undefined when the store cannot be read right now. */
function isEndedIn(sessions: Pick<SessionStore, "isEnded">, { id }: Session): Promise<boolean | undefined> {
  return sessions.isEnded(id).catch((error: unknown) => {
    if (!isRefusedByStore(error)) throw error;
    return undefined;
  });
}

/**
 * Who sent a request to the administration port; undefined without a token, or with one that is not on file; `over` for a
 * session whose time is over, or of a form that is no longer made: its signature is not looked at, so it is no guess.
 */
export type Authenticate = (request: Pick<HttpRequest, "headers">) => Operator | "over" | undefined;

/** RFC 6750 section 2.1; the scheme's case means nothing (RFC 9110 section 11.1). */
const BEARER = /^Bearer +([A-Za-z0-9\-._~+/]+=*)$/i;

/**
 * Creates the judge of `Authorization: Bearer`: an admin token, or the session of one. Hashes are compared, each with each,
 * so that neither the time it takes nor where it ends tells anything of a token; and no number of tries finds one (see below).
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

/** What a request brings as bearer token; undefined for none. */
export function bearerOf({ authorization = "" }: HttpRequest["headers"]): string | undefined {
  return BEARER.exec(authorization)?.[1];
}

/** The admin token itself, and no session of it; undefined for any other text. */
export function adminTokenOf(tokens: readonly AdminToken[], token: string): AdminToken | undefined {
  const hash = hashAdminToken(token);
  let found: AdminToken | undefined;
  for (const each of tokens) if (timingSafeEqual(each.hash, hash)) found = each;
  return found;
}

/** A working day. */
const SESSION_MS = 12 * 60 * 60_000;
/** Older builds made them without an id. */
const SESSION = /^relay_session_(\d{1,15})\.(?:([A-Za-z0-9_-]{22})\.)?([A-Za-z0-9_-]{43})$/;

/**
 * Makes what a browser that was let in sends in place of the admin token: it ends by itself, when its operator signs out, and
 * with that token. Every process that has loaded the token file takes it; kept is only which ones were ended.
 */
export function createSession(token: AdminToken, now: number): string {
  const endsAt = String(now + SESSION_MS);
  const id = randomBytes(16).toString("base64url");
  return `relay_session_${endsAt}.${id}.${signatureOf(token, sessionText(endsAt, id)).toString("base64url")}`;
}

function sessionText(endsAt: string, id: string): string {
  return `relay console session ${id} until ${endsAt}`;
}

/** Signs a text with the hash of a token, which nobody has but who can read the token file. 32 bytes. */
export function signatureOf({ hash }: AdminToken, text: string): Buffer {
  return createHmac("sha256", hash).update(text).digest();
}

/** What is counted of each, in windows of a minute that begin with the first. */
interface Attempts {
  /** Whole seconds until there is room for another one; 0 when there is now. */
  waitSeconds(whose: string): number;
  add(whose: string): void;
}

const WINDOW_MS = 60_000;
/** Counted at once, some hundred bytes each: whoever has more addresses than this makes the oldest forgotten. */
const MAX_KEPT = 10_000;

/**
 * Nothing counted yet. By hand, since it has to be known before a body is read, and bounded whoever comes: the limiter of
 * calls answers later, and keeps every key for its minute. Each process counts alone.
 *
 * @param max of each in a minute.
 * @param now milliseconds of a clock that never goes back.
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
      kept.delete(whose);
      kept.set(whose, { count: 1, endsAt: now() + WINDOW_MS });
      const [oldest = ""] = kept.keys();
      if (kept.size > MAX_KEPT) kept.delete(oldest);
    },
  };
}

/** One admin token: whose it is, and its SHA-256. The token itself is kept nowhere. */
export interface AdminToken extends Operator {
  readonly hash: Buffer;
}

/** A token file that cannot be used. The message names file and line, never content. */
export class AdminTokenFileError extends Error {
  constructor(path: string, problem: string, options?: { cause?: unknown }) {
    super(`Token file ${path}: ${problem}`, options);
    this.name = "AdminTokenFileError";
  }
}

const ROLES: readonly Role[] = ["read-only", "operator"];
/** No colon: the audit trail writes `cli:` in front of whoever used the command line. */
const NAME = /^[A-Za-z0-9._@-]{1,64}$/;
/** b64token of RFC 6750 section 2.1. The shortest is 32 characters, 192 bits in base64: nobody guesses one. */
const TOKEN = /^(?=.{32,256}$)[A-Za-z0-9\-._~+/]+=*$/;

/**
 * Reads a token file's text: `NAME ROLE TOKEN`, one a line. Blank lines and lines that start with `#` are skipped.
 * Several tokens may have one name, while one replaces the other. `path` is only for messages.
 */
export function parseTokenFile(text: string, path: string): readonly AdminToken[] {
  const tokens = new Map<string, AdminToken>();
  for (const [index, line] of text.split(/\r?\n/).entries()) {
    if (line.trim() === "" || line.trimStart().startsWith("#")) continue;
    const token = parseLine(line);
    if (typeof token === "string") throw new AdminTokenFileError(path, `line ${index + 1}: ${token}`);
    const key = token.hash.toString("hex");
    if (tokens.has(key)) {
      throw new AdminTokenFileError(path, `line ${index + 1}: this token is on an earlier line too`);
    }
    tokens.set(key, token);
  }
  if (tokens.size === 0) throw new AdminTokenFileError(path, "has no token; a line is NAME ROLE TOKEN");
  return [...tokens.values()];
}

/** A new token file: one operator with a new random token. */
export function createTokenFileText(): string {
  return `# NAME ROLE TOKEN, one a line; ROLE is read-only or operator\noperator operator ${createAdminToken()}\n`;
}

/** SHA-256 of a token as a request brings it. */
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
  /** Reject when there is no file instead of creating it with a new token: production, as with the key file. */
  readonly mustExist: boolean;
  /** Called when this process has made the file. */
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

/** What an operator may do: see everything, or also change it. */
export type Role = "read-only" | "operator";

/** Who administers: the holder of one admin token. */
export interface Operator {
  /** The token's name in the token file; it stands in the audit trail. */
  readonly name: string;
  readonly role: Role;
  /** Of a browser; undefined for the token itself. */
  readonly session?: Session;
}

/** Where the services of the administration port find who is calling; undefined only where nobody was put. */
export const operatorContextKey = createContextKey<Operator | undefined>(undefined);
