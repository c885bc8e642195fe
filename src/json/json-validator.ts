import { isUtf8 } from "node:buffer";
import { slicesOf } from "../lib/chunks.js";
import { atOnce, type Steps } from "../lib/turns.js";
import { createWasmModule } from "../lib/wasm-module.js";
import { JSON_BLOCKS_WASM } from "./json-blocks-wasm.js";

/** How large a JSON text may be in structure; no limit when left out. */
export interface JsonLimits {
  /** Arrays and objects inside one another; a scalar has depth 0, `[]` has 1. */
  readonly maxDepth?: number | undefined;
  /** Members of all objects together, repeated names included. */
  readonly maxKeys?: number | undefined;
}

/**
 * `valid`, or the first fault met: not JSON or not UTF-8, nested deeper than `maxDepth`, more members than `maxKeys`.
 */
export type JsonVerdict = "valid" | "syntax" | "depth" | "keys";

/**
 * Judges a whole JSON text (RFC 8259).
 *
 * It accepts what `JSON.parse` accepts: one value of any kind, whitespace around it, lone surrogate escapes, repeated
 * names, numbers of any size, any depth. It also checks that the bytes are UTF-8. A byte order mark is refused (RFC 8259
 * section 8.1): strip it first. It builds no values and needs one bit per level of nesting.
 */
export function validateJson(bytes: Uint8Array, limits?: JsonLimits): JsonVerdict {
  return atOnce(validateJsonInSteps(bytes, limits));
}

/** The same in steps. */
export function* validateJsonInSteps(bytes: Uint8Array, limits?: JsonLimits): Steps<JsonVerdict> {
  const checker = createJsonChecker(limits);
  for (const slice of slicesOf({ pieces: [bytes] })) {
    if (!checker.push(slice)) break;
    yield;
  }
  if (checker.end()) return "valid";
  const { passed } = checker;
  if (passed === undefined) return "syntax";
  // Where a limit is passed something else may have been wrong before, as far as 64 bytes are looked at together.
  const beginning = createJsonChecker();
  for (const slice of slicesOf({ pieces: [bytes.subarray(0, passed.at + 1)] })) {
    beginning.push(slice);
    yield;
  }
  return beginning.endBeginning() ? passed.limit : "syntax";
}

/** Tells whether bytes that arrive in chunks are one JSON text. */
export interface JsonChecker {
  /** Takes the next bytes, which may end anywhere. False once the text is refused; then it stays false. */
  push(chunk: Uint8Array): boolean;
  /** Whether the bytes so far are exactly one JSON value. Nothing is pushed after it. */
  end(): boolean;
}

/** Creates a checker for one JSON text; see {@link validateJson}. */
export function createJsonChecker(limits?: JsonLimits): Checker {
  return new Checker(limits);
}

/** Whether the bytes, or all the pieces one after the other, are one JSON value in UTF-8 (RFC 8259). */
export function isJson(...pieces: readonly Uint8Array[]): boolean {
  const checker = createJsonChecker();
  for (const piece of pieces) if (!checker.push(piece)) break;
  return checker.end();
}

/** What wasm/json-blocks.ts exports. */
interface JsonBlocks {
  readonly memory: { readonly buffer: ArrayBuffer };
  inputAt(): number;
  inputBytes(): number;
  begin(maxDepth: number, maxKeys: number): void;
  push(length: number): number;
  end(): number;
  endBeginning(): number;
  limitPassedAt(): number;
  isLimitOfKeys(): number;
}

const MODULE = createWasmModule<JsonBlocks>(JSON_BLOCKS_WASM);

/**
 * Instances between two texts, of which nothing is left in them: making one takes 16 microseconds and 128 KiB, and the
 * garbage collector hurries when many are left to it.
 */
const IDLE: JsonBlocks[] = [];
const MAX_IDLE = 8;

/** Of a module of WebAssembly. */
const NO_LIMIT = 0x7fff_ffff;

class Checker implements JsonChecker {
  /** Where the text passes a limit if it is good up to there; known when it has ended. */
  passed: { readonly at: number; readonly limit: "depth" | "keys" } | undefined;
  #blocks: JsonBlocks | undefined = IDLE.pop() ?? MODULE.createInstance();
  readonly #utf8 = createUtf8Checker();
  #isGood = true;

  constructor({ maxDepth = NO_LIMIT, maxKeys = NO_LIMIT }: JsonLimits = {}) {
    this.#blocks?.begin(maxDepth, maxKeys);
  }

  push(chunk: Uint8Array): boolean {
    this.#isGood &&= this.#blocks !== undefined && this.#utf8.push(chunk) && pushInto(this.#blocks, chunk);
    return this.#isGood;
  }

  end(): boolean {
    return this.#endWith((blocks) => blocks.end());
  }

  /** Whether the bytes so far could be the beginning of JSON, if they end with the first byte of a string, array or object. */
  endBeginning(): boolean {
    return this.#endWith((blocks) => blocks.endBeginning());
  }

  #endWith(end: (blocks: JsonBlocks) => number): boolean {
    const blocks = this.#blocks;
    if (blocks === undefined) return this.#isGood;
    this.#blocks = undefined;
    this.#isGood &&= this.#utf8.end() && end(blocks) !== 0;
    const at = blocks.limitPassedAt();
    if (at !== -1) this.passed = { at, limit: blocks.isLimitOfKeys() === 0 ? "depth" : "keys" };
    if (IDLE.length < MAX_IDLE) IDLE.push(blocks);
    return this.#isGood;
  }
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
export function unfinishedLength(bytes: Uint8Array): number {
  for (let length = 1; length <= 3 && length <= bytes.length; length++) {
    const byte = bytes[bytes.length - length] as number;
    if (byte < 0x80) return 0;
    if (byte >= 0xc0) return sequenceLength(byte) > length ? length : 0;
  }
  return 0;
}
