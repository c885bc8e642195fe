import { JSON_BLOCKS_WASM } from "./json-blocks-wasm.js";
import { JSON_GRAMMAR } from "./json-grammar.js";
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
  tableAt(): number;
  inputAt(): number;
  inputBytes(): number;
  begin(value: number, after: number): void;
  push(length: number): number;
  end(): number;
}

/** What is used of it: the types of Node.js do not have it. */
const { Module, Instance } = (globalThis as unknown as { readonly WebAssembly: WebAssemblyApi }).WebAssembly;

interface WebAssemblyApi {
  readonly Module: new (bytes: Uint8Array) => object;
  readonly Instance: new (module: object) => { readonly exports: unknown };
}

const MODULE = new Module(Buffer.from(JSON_BLOCKS_WASM, "base64"));

/**
 * Creates a checker for one JSON text (RFC 8259), any size, any depth.
 *
 * It accepts what `createJsonValidator()` without limits accepts, but cannot say why a text is refused, and needs a
 * quarter of the time. Its memory is its own and takes about 100 microseconds to make: for a text that is here as a
 * whole, `isJson()` is cheaper.
 */
export function createJsonChecker(): JsonChecker {
  return checkerWith(createBlocks());
}

/** Whether the bytes, or all the pieces one after the other, are one JSON value in UTF-8 (RFC 8259). */
export function isJson(...pieces: readonly Uint8Array[]): boolean {
  const checker = checkerWith(SHARED);
  return pieces.every((piece) => checker.push(piece)) && checker.end();
}

/** For texts that are read in one go: nothing of one is left for the next. */
const SHARED = createBlocks();

function createBlocks(): JsonBlocks {
  const blocks = new Instance(MODULE).exports as unknown as JsonBlocks;
  const { transitions } = JSON_GRAMMAR;
  new Uint16Array(blocks.memory.buffer, blocks.tableAt(), transitions.length).set(transitions);
  return blocks;
}

function checkerWith(blocks: JsonBlocks): JsonChecker {
  const utf8 = createUtf8Checker();
  let isGood = true;
  blocks.begin(JSON_GRAMMAR.start, JSON_GRAMMAR.afterTop);
  return {
    push(chunk) {
      isGood &&= utf8.push(chunk) && pushInto(blocks, chunk);
      return isGood;
    },
    end() {
      isGood &&= utf8.end() && blocks.end() !== 0;
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
