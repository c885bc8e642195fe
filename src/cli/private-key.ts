import { usageError } from "./exit-error.js";
import { readInputFile } from "./read-input.js";

/** Holds an application's private key for `relay call`. */
export const PRIVATE_KEY_VARIABLE = "RELAY_PRIVATE_KEY";

/** A private key is far shorter. In bytes. */
const MAX_BYTES = 4096;

/**
 * The application's private key, from a file or else the environment; undefined when neither is given. Never an
 * argument: those are in the shell's history and in every user's list of processes.
 */
export async function readPrivateKey(file: string | undefined): Promise<string | undefined> {
  const text = file === undefined ? process.env[PRIVATE_KEY_VARIABLE] : String(await readInputFile(file, MAX_BYTES));
  const key = text?.trim() ?? "";
  if (/^[\x21-\x7e]+$/.test(key)) return key;
  if (file === undefined && key === "") return undefined;
  throw usageError(`${file ?? PRIVATE_KEY_VARIABLE} does not hold a private key: one word of printable characters.`);
}
