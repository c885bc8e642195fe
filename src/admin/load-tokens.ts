import { existsSync } from "node:fs";
import { readFile } from "node:fs/promises";
import { createSecretFile } from "../lib/secret-file.js";
import { type AdminToken, AdminTokenFileError, createTokenFileText, parseTokenFile } from "./token-file.js";

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
        ? "does not exist; make it, check RELAY_ADMIN_TOKEN_FILE, or set RELAY_ADMIN_LISTEN=off (with NODE_ENV=production it is never created)"
        : `cannot be read (${code}); check RELAY_ADMIN_TOKEN_FILE`;
    throw new AdminTokenFileError(path, problem, { cause });
  }
}

function codeOf(error: unknown): string {
  return (error as NodeJS.ErrnoException).code ?? "unknown error";
}
