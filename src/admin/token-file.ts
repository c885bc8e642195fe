import { createHash, randomBytes } from "node:crypto";
import { existsSync } from "node:fs";
import { readFile } from "node:fs/promises";
import { createSecretFile } from "../lib/secret-file.js";
import type { Operator, Role } from "./operator.js";

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

function codeOf(error: unknown): string {
  return (error as NodeJS.ErrnoException).code ?? "unknown error";
}
