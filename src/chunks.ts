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
  const blocks: Uint8Array[] = [];
  let loose: Uint8Array[] = [];
  let length = 0;
  return {
    get length() {
      return length;
    },
    push(chunk) {
      length += chunk.length;
      loose.push(chunk);
      if (loose.length < MAX_LOOSE) return;
      blocks.push(Buffer.concat(loose));
      loose = [];
    },
    concat() {
      const all = blocks.length === 0 ? loose : [...blocks, ...loose];
      const [only] = all;
      if (all.length === 1 && only !== undefined) return bufferOf(only);
      return Buffer.concat(all, length);
    },
  };
}
