import { isUtf8 } from "node:buffer";
import { createWasmModule } from "../lib/wasm-module.js";
import { JSON_BLOCKS_WASM } from "./json-blocks-wasm.js";

/** Tells whether bytes that arrive in chunks are one JSON text. */
export interface JsonChecker {
  /** Takes the next bytes, which may end anywhere. False once the text cannot become JSON; then it stays false. */
  push(chunk: Uint8Array): boolean;
  /** Whether the bytes so far are exactly one JSON value. Nothing is pushed after it. */
  end(): boolean;
}

/** What wasm/json-blocks.ts exports. */
interface JsonBlocks {
  readonly memory: { readonly buffer: ArrayBuffer };
  inputAt(): number;
  inputBytes(): number;
  begin(): void;
  push(length: number): number;
  end(): number;
}

const MODULE = createWasmModule<JsonBlocks>(JSON_BLOCKS_WASM);

/**
 * Creates a checker for one JSON text (RFC 8259), any size, any depth.
 *
 * It accepts what `createJsonValidator()` without limits accepts, but cannot say why a text is refused, and needs a
 * quarter of the time.
 */
export function createJsonChecker(): JsonChecker {
  return checkerWith(IDLE.pop() ?? MODULE.createInstance());
}

/** Whether the bytes, or all the pieces one after the other, are one JSON value in UTF-8 (RFC 8259). */
export function isJson(...pieces: readonly Uint8Array[]): boolean {
  const checker = createJsonChecker();
  for (const piece of pieces) if (!checker.push(piece)) break;
  return checker.end();
}

/**
 * Instances between two texts, of which nothing is left in them: making one takes 16 microseconds and 128 KiB, and the
 * garbage collector hurries when many are left to it.
 */
const IDLE: JsonBlocks[] = [];
const MAX_IDLE = 8;

function checkerWith(blocks: JsonBlocks): JsonChecker {
  const utf8 = createUtf8Checker();
  let isGood = true;
  let isOver = false;
  blocks.begin();
  return {
    push(chunk) {
      isGood &&= utf8.push(chunk) && pushInto(blocks, chunk);
      return isGood;
    },
    end() {
      isGood &&= utf8.end() && blocks.end() !== 0;
      if (!isOver && IDLE.length < MAX_IDLE) IDLE.push(blocks);
      isOver = true;
      return isGood;
    },
  };
}

function pushInto(blocks: JsonBlocks, chunk: Uint8Array): boolean {
  const most = blocks.inputBytes();
  for (let at = 0; at < chunk.length; at += most) {
    const piece = chunk.length <= most ? chunk : chunk.subarray(at, at + most);
    // Made each time: a memory that has grown leaves older views empty.
    new Uint8Array(blocks.memory.buffer).set(piece, blocks.inputAt());
    if (blocks.push(piece.length) === 0) return false;
  }
  return true;
}

const NOTHING: Uint8Array = new Uint8Array(0);

/** Checks UTF-8 (RFC 3629) chunk by chunk; a chunk may end inside a character. */
interface Utf8Checker {
  /** False when the bytes so far cannot be the beginning of valid UTF-8. */
  push(chunk: Uint8Array): boolean;
  /** False when the text stops inside a character. */
  end(): boolean;
}

/** Creates a checker for one text. It keeps at most 3 bytes between chunks. */
export function createUtf8Checker(): Utf8Checker {
  let pending = NOTHING;
  return {
    push(chunk) {
      let rest = chunk;
      if (pending.length > 0) {
        const missing = sequenceLength(pending[0] as number) - pending.length;
        pending = Buffer.concat([pending, chunk.subarray(0, missing)]);
        if (chunk.length < missing) return true;
        if (!isUtf8(pending)) return false;
        rest = chunk.subarray(missing);
      }
      const whole = rest.length - unfinishedLength(rest);
      if (whole === rest.length) {
        pending = NOTHING;
        return isUtf8(rest);
      }
      // A copy: the caller may use the chunk's memory again.
      pending = new Uint8Array(rest.subarray(whole));
      return isUtf8(rest.subarray(0, whole));
    },
    end: () => pending.length === 0,
  };
}

function sequenceLength(lead: number): number {
  if (lead >= 0xf0) return 4;
  return lead >= 0xe0 ? 3 : 2;
}

/** How many bytes at the end begin a character that is not complete: 0 to 3. */
function unfinishedLength(bytes: Uint8Array): number {
  for (let length = 1; length <= 3 && length <= bytes.length; length++) {
    const byte = bytes[bytes.length - length] as number;
    if (byte < 0x80) return 0;
    if (byte >= 0xc0) return sequenceLength(byte) > length ? length : 0;
  }
  return 0;
}
