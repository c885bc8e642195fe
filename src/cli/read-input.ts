import { createReadStream } from "node:fs";
import type { Readable } from "node:stream";
import { failure, usageError } from "./command.js";

/** Reads standard input to its end; more than `maxBytes` is refused. */
export function readStandardInput(maxBytes: number): Promise<Buffer> {
  return readAll(process.stdin, "standard input", maxBytes);
}

/** Reads a file; more than `maxBytes` is refused. */
export function readInputFile(path: string, maxBytes: number): Promise<Buffer> {
  return readAll(createReadStream(path), path, maxBytes);
}

async function readAll(stream: Readable, name: string, maxBytes: number): Promise<Buffer> {
  const chunks: Buffer[] = [];
  let size = 0;
  try {
    for await (const chunk of stream as AsyncIterable<Buffer>) {
      size += chunk.length;
      if (size > maxBytes)
        throw usageError(`${name} holds more than ${maxBytes} bytes; give what the command expects.`);
      chunks.push(chunk);
    }
  } catch (error) {
    const code = (error as NodeJS.ErrnoException).code;
    throw code === undefined ? error : failure(`${name} cannot be read (${code}).`, error);
  } finally {
    stream.destroy();
  }
  return Buffer.concat(chunks);
}

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
