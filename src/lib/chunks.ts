import type { Steps } from "./turns.js";

/** The same bytes as a Buffer, without a copy. */
export function bufferOf(bytes: Uint8Array): Buffer {
  return bytes instanceof Buffer ? bytes : Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength);
}

/** Most chunks to keep separately; then they are joined. */
const MAX_LOOSE = 1024;
/** Pieces that are smaller on average cost more than copying them into one. */
const MIN_PIECE_BYTES = 8 * 1024;

/** Bytes in pieces, in order. */
export interface Bytes {
  readonly length: number;
  /** The pieces; never many small ones. */
  readonly pieces: readonly Uint8Array[];
  /** Joins the pieces, and keeps only the result. A single piece is returned without a copy. */
  concat(): Buffer;
  /** Replaces the pieces with `joined`, the same bytes joined elsewhere. */
  becomeOne(joined: Buffer): void;
}

/** The chunks of one body received so far, in order. */
export interface Chunks extends Bytes {
  push(chunk: Uint8Array): void;
}

/** Bytes in one piece. */
export function bytesOf(piece: Uint8Array): Bytes {
  const chunks = createChunks();
  chunks.push(piece);
  return chunks;
}

/**
 * Collects the chunks of a body. A peer may send one byte at a time, and a chunk has an overhead of over a hundred
 * bytes and keeps the packet it came in alive: 10 MiB in chunks of one byte would take a gigabyte (threats I14, P05).
 */
export function createChunks(): Chunks {
  return new ChunkList();
}

/** A class, since every call has two: one object, no closures, and no list for a body of one chunk, the usual case. */
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

  get pieces(): readonly Uint8Array[] {
    if (this.#only !== undefined) return [this.#only];
    const all = this.#all();
    return all.length * MIN_PIECE_BYTES <= this.length ? all : [this.concat()];
  }

  concat(): Buffer {
    if (this.#only === undefined) {
      const all = this.#all();
      this.becomeOne(bufferOf(all.length === 1 ? (all[0] as Uint8Array) : Buffer.concat(all, this.length)));
    }
    return bufferOf(this.#only as Uint8Array);
  }

  becomeOne(joined: Buffer): void {
    this.#only = joined;
    this.#blocks = undefined;
    this.#loose = undefined;
  }

  #all(): Uint8Array[] {
    return [...(this.#blocks ?? []), ...(this.#loose ?? [])];
  }
}

/** Puts bytes between two buffers, without a copy. */
export function between(before: Buffer, bytes: Bytes, after: Buffer): Bytes {
  const all = createChunks();
  for (const piece of [before, ...bytes.pieces, after]) all.push(piece);
  return all;
}

/** Bytes per step of work: several passes find them in the processor's cache, and none takes a millisecond. */
export const SLICE_BYTES = 64 * 1024;

/** Anything larger is processed over several turns of the event loop; this much takes about as long as one turn may. */
export const LARGE_BYTES = 256 * 1024;

/** Decides when large work should pause: whenever it is {@link SLICE_BYTES} past the last pause. */
export function createPace(start = 0): (at: number) => boolean {
  let pausedAt = start;
  return (at) => {
    if (at - pausedAt < SLICE_BYTES) return false;
    pausedAt = at;
    return true;
  };
}

/** Cuts bytes into slices of {@link SLICE_BYTES}, without a copy. */
export function* slicesOf({ pieces }: Pick<Bytes, "pieces">): Generator<Buffer, void, undefined> {
  for (const piece of pieces) {
    for (let at = 0; at < piece.length; at += SLICE_BYTES) {
      yield bufferOf(piece.subarray(at, at + SLICE_BYTES));
    }
  }
}

/**
 * {@link Bytes.concat} in steps: copying 10 MiB into fresh memory takes longer than a turn may. The pieces are replaced
 * with the result, so that the bytes are held only once.
 */
export function* joinedInSteps(bytes: Bytes): Steps<Buffer> {
  if (bytes.length <= SLICE_BYTES || bytes.pieces.length === 1) return bytes.concat();
  const joined = Buffer.allocUnsafeSlow(bytes.length);
  let at = 0;
  for (const slice of slicesOf(bytes)) {
    at += slice.copy(joined, at);
    yield;
  }
  bytes.becomeOne(joined);
  return joined;
}

const QUOTE = Buffer.from('"');
/** Base64 has four characters for three bytes (RFC 4648 section 4). */
const GROUP_BYTES = 3;

/** UTF-8 text as a JSON string with its quotes, byte for byte as `JSON.stringify()` writes it, in steps. */
export function* stringInSteps(utf8: Bytes): Steps<Bytes> {
  const json = createChunks();
  json.push(QUOTE);
  for (const slice of slicesOf(utf8)) {
    json.push(escaped(slice));
    yield;
  }
  json.push(QUOTE);
  return json;
}

/** The members of a JSON object, without its braces. Names may be repeated, like the fields of an answer. */
export function membersJson(members: ReadonlyArray<readonly [name: string, value: string]>): string {
  let json = "";
  for (const [name, value] of members)
    json += `${json === "" ? "" : ","}${JSON.stringify(name)}:${JSON.stringify(value)}`;
  return json;
}

/** No bytes. */
export const NOTHING: Buffer = Buffer.alloc(0);

/** A few bytes in base64, as a JSON string with its quotes. */
export function base64Json(bytes: Bytes): string {
  return `"${bytes.concat().toString("base64")}"`;
}

/** The same for many bytes, in steps. */
export function* base64StringInSteps(bytes: Bytes): Steps<Bytes> {
  return between(QUOTE, yield* base64InSteps(bytes), QUOTE);
}

/** Bytes in base64, in steps. */
export function* base64InSteps(bytes: Bytes): Steps<Bytes> {
  const encoded = createChunks();
  let rest: Buffer = NOTHING;
  for (const slice of slicesOf(bytes)) {
    const input = rest.length === 0 ? slice : Buffer.concat([rest, slice]);
    const whole = input.length - (input.length % GROUP_BYTES);
    encoded.push(base64(input.subarray(0, whole)));
    rest = input.subarray(whole);
    yield;
  }
  encoded.push(base64(rest));
  return encoded;
}

/**
 * Escapes UTF-8 for a JSON string without decoding it. Every character that JSON escapes is one byte of UTF-8, and the
 * bytes of longer characters, read as latin1, need no escape (RFC 8259 section 7). So a slice may end within a
 * character.
 */
function escaped(utf8: Buffer): Buffer {
  const text = JSON.stringify(utf8.toString("latin1"));
  return Buffer.from(text.slice(1, -1), "latin1");
}

function base64(bytes: Buffer): Buffer {
  return Buffer.from(bytes.toString("base64"), "latin1");
}
