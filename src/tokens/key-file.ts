import { createSecretKey, type KeyObject, randomBytes } from "node:crypto";

/** A key of the ring. A KeyObject prints without its bytes. */
export interface SealKey {
  readonly id: string;
  readonly key: KeyObject;
}

/** A key file that cannot be used. The message names file and line, never content. */
export class KeyFileError extends Error {
  constructor(path: string, problem: string, options?: { cause?: unknown }) {
    super(`Key file ${path}: ${problem}`, options);
    this.name = "KeyFileError";
  }
}

const KEY_BYTES = 32;
const ID = /^[A-Za-z0-9._-]{1,64}$/;
/** 32 bytes in base64 (RFC 4648 section 4): 43 characters and one `=`. */
const BASE64 = /^[A-Za-z0-9+/]{43}=$/;

/**
 * Reads a key file's text: `keyId:base64` of 32 bytes, one a line, the current key first. Blank lines and lines that
 * start with `#` are skipped. `path` is only for messages.
 */
export function parseKeyFile(text: string, path: string): readonly [SealKey, ...SealKey[]] {
  const keys = new Map<string, SealKey>();
  for (const [index, line] of text.split(/\r?\n/).entries()) {
    if (line === "" || line.startsWith("#")) continue;
    const key = parseLine(line);
    if (typeof key === "string") throw new KeyFileError(path, `line ${index + 1}: ${key}`);
    if (keys.has(key.id)) throw new KeyFileError(path, `line ${index + 1}: this key id stands on an earlier line too`);
    keys.set(key.id, key);
  }
  const [current, ...others] = keys.values();
  if (current === undefined) throw new KeyFileError(path, "has no key; a line is keyId:base64 of 32 bytes");
  return [current, ...others];
}

/** A new random key as a line of the file. */
export function createKeyLine(): { readonly id: string; readonly line: string } {
  const id = randomBytes(6).toString("hex");
  return { id, line: `${id}:${randomBytes(KEY_BYTES).toString("base64")}\n` };
}

/** The key of one line, or what is wrong with it. */
function parseLine(line: string): SealKey | string {
  const colon = line.indexOf(":");
  if (colon === -1) return "must be keyId:base64";
  const id = line.slice(0, colon);
  if (!ID.test(id)) return "the key id must be 1 to 64 letters, digits, '.', '_' or '-'";
  const encoded = line.slice(colon + 1);
  const bytes = Buffer.from(encoded, "base64");
  // The second check refuses stray bits in the last character: one key, one spelling.
  if (!BASE64.test(encoded) || bytes.toString("base64") !== encoded) return "the key must be 32 bytes in base64";
  return { id, key: createSecretKey(bytes) };
}
