import { createReadStream } from "node:fs";
import type { Readable } from "node:stream";
import { failure, usageError } from "./exit-error.js";

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
