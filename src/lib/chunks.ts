import type { Steps } from "./turns.js";

/** The same bytes as a Buffer, without a copy. */
export function bufferOf(bytes: Uint8Array): Buffer {
  return bytes instanceof Buffer ? bytes : Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength);
}

/** Most chunks that are kept as they came; then they become one. */
const MAX_LOOSE = 1024;
/** Pieces that are smaller on average cost more than the copy that makes one of them. */
const MIN_PIECE_BYTES = 8 * 1024;

/** Bytes that lie in pieces, in order. */
export interface Bytes {
  readonly length: number;
  /** Never many small ones. */
  readonly pieces: readonly Uint8Array[];
  /** All of them in one piece, of which it consists from then on; a single one is returned as it came, without a copy. */
  concat(): Buffer;
  /** What `concat()` does with a piece that somebody else has made: these very bytes, joined. */
  becomeOne(joined: Buffer): void;
}

/** The chunks of one body, in order, as far as they have come. */
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

/** Bytes between two others, without a copy of theirs. */
export function between(before: Buffer, bytes: Bytes, after: Buffer): Bytes {
  const all = createChunks();
  for (const piece of [before, ...bytes.pieces, after]) all.push(piece);
  return all;
}

/** Bytes looked at together: several ways of looking find them in the processor's cache, and none takes a millisecond. */
export const SLICE_BYTES = 64 * 1024;

/** What is larger is worked on in turns of the event loop: up to here all of it takes about as long as one turn may. */
export const LARGE_BYTES = 256 * 1024;

/** Tells work on something large when it may pause: once it is a slice further than the last time. */
export function createPace(start = 0): (at: number) => boolean {
  let pausedAt = start;
  return (at) => {
    if (at - pausedAt < SLICE_BYTES) return false;
    pausedAt = at;
    return true;
  };
}

/** Bytes cut into slices, without a copy. */
export function* slicesOf({ pieces }: Pick<Bytes, "pieces">): Generator<Buffer, void, undefined> {
  for (const piece of pieces) {
    for (let at = 0; at < piece.length; at += SLICE_BYTES) {
      yield bufferOf(piece.subarray(at, at + SLICE_BYTES));
    }
  }
}

/**
 * Bytes in one piece, of which they consist from then on, in steps: copying ten mebibytes into memory that is new takes
 * longer than a turn may. Whoever goes on holding them holds them once.
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
/** Base64 makes four characters of three bytes (RFC 4648 section 4). */
const GROUP_BYTES = 3;

/** Text in UTF-8 as a JSON string, quotes included: the bytes that `JSON.stringify()` makes of the text. */
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

/** The members of a JSON object, without its braces. Names may come twice, as fields of an answer do. */
export function membersJson(members: ReadonlyArray<readonly [name: string, value: string]>): string {
  let json = "";
  for (const [name, value] of members)
    json += `${json === "" ? "" : ","}${JSON.stringify(name)}:${JSON.stringify(value)}`;
  return json;
}

/** No bytes. */
export const NOTHING: Buffer = Buffer.alloc(0);

/** Few bytes in base64, as a JSON string with its quotes. */
export function base64Json(bytes: Bytes): string {
  return `"${bytes.concat().toString("base64")}"`;
}

/** The same of many, in steps. */
export function* base64StringInSteps(bytes: Bytes): Steps<Bytes> {
  return between(QUOTE, yield* base64InSteps(bytes), QUOTE);
}

/** Bytes in base64. */
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
 * Everything that JSON escapes is one byte of UTF-8, and the bytes of longer characters, taken for latin1, are nothing
 * that it escapes (RFC 8259 section 7). So a slice may end within a character, and nothing is decoded.
 */
function escaped(utf8: Buffer): Buffer {
  const text = JSON.stringify(utf8.toString("latin1"));
  return Buffer.from(text.slice(1, -1), "latin1");
}

function base64(bytes: Buffer): Buffer {
  return Buffer.from(bytes.toString("base64"), "latin1");
}
