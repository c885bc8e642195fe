import { bufferOf } from "./buffer-of.js";

/** Most chunks that are kept as they came; then they become one. */
const MAX_LOOSE = 1024;

/** The chunks of one body, in order. */
export interface Chunks {
  /** Bytes so far. */
  readonly length: number;
  push(chunk: Uint8Array): void;
  /** All of them in one piece; a single chunk is returned as it came, without a copy. */
  concat(): Buffer;
}

/**
 * Collects the chunks of a body. A peer may send one byte at a time, and a chunk costs over a hundred bytes besides its
 * own and holds on to the packet it came in: 10 MiB in chunks of one byte would take a gigabyte (threats I14, P05).
 */
export function createChunks(): Chunks {
  return new ChunkList();
}

/** A class, since every call has two: one object, no closures, and no list for a body of one chunk, as most are. */
class ChunkList implements Chunks {
  length = 0;
  #only: Uint8Array | undefined;
  #loose: Uint8Array[] | undefined;
  #blocks: Uint8Array[] | undefined;

  push(chunk: Uint8Array): void {
    this.length += chunk.length;
    if (this.length === chunk.length) {
      this.#only = chunk;
      return;
    }
    const loose = this.#loose ?? [];
    this.#loose = loose;
    if (this.#only !== undefined) loose.push(this.#only);
    this.#only = undefined;
    loose.push(chunk);
    if (loose.length < MAX_LOOSE) return;
    this.#blocks ??= [];
    this.#blocks.push(Buffer.concat(loose));
    this.#loose = undefined;
  }

  concat(): Buffer {
    if (this.#only !== undefined) return bufferOf(this.#only);
    const all = [...(this.#blocks ?? []), ...(this.#loose ?? [])];
    const [first] = all;
    return all.length === 1 && first !== undefined ? bufferOf(first) : Buffer.concat(all, this.length);
  }
}
