import { createWasmModule } from "../lib/wasm-module.js";
import { JSON_BLOCKS_WASM } from "./json-blocks-wasm.js";
import { createUtf8Checker } from "./utf8-checker.js";

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
