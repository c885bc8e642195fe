import { isUtf8 } from "node:buffer";
import { NOTHING, slicesOf } from "../lib/chunks.js";
import { atOnce, type Steps } from "../lib/turns.js";
import { createWasmModule } from "../lib/wasm-module.js";
import { JSON_BLOCKS_WASM } from "./json-blocks-wasm.js";

/** Limits on the structure of a JSON text; no limit when left out. */
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
  // The text is checked 64 bytes at a time, so a syntax error may come before the limit in the same block: check again.
  const beginning = createJsonChecker();
  for (const slice of slicesOf({ pieces: [bytes.subarray(0, passed.at + 1)] })) {
    beginning.push(slice);
    yield;
  }
  return beginning.endBeginning() ? passed.limit : "syntax";
}

/** Checks whether bytes that arrive in chunks are one JSON text. */
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
 * Pool of idle instances: creating one takes 16 microseconds and 128 KiB, and leaving many to the garbage collector
 * makes it run more often. `begin()` resets the state. Bytes of the last text stay in memory, but are not read again.
 */
const IDLE: JsonBlocks[] = [];
const MAX_IDLE = 8;

/** Largest i32 of WebAssembly. */
const NO_LIMIT = 0x7fff_ffff;

class Checker implements JsonChecker {
  /** The limit that the text exceeds, and where, if the text is valid up to there. Set by `end()`. */
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

  /**
   * Whether the bytes so far could begin a JSON text. They must end with the first byte of a string, array or object.
   */
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
    // A new view each time: views are detached when the memory grows.
    new Uint8Array(blocks.memory.buffer).set(piece, blocks.inputAt());
    if (blocks.push(piece.length) === 0) return false;
  }
  return true;
}

/** Checks UTF-8 (RFC 3629) chunk by chunk; a chunk may end inside a character. */
interface Utf8Checker {
  /** False when the bytes so far cannot be the beginning of valid UTF-8. */
  push(chunk: Uint8Array): boolean;
  /** False when the text stops inside a character. */
  end(): boolean;
}

/** Creates a checker for one text. It keeps at most 3 bytes between chunks. */
export function createUtf8Checker(): Utf8Checker {
  let pending: Uint8Array = NOTHING;
  return {
    push(chunk) {
      let rest = chunk;
      if (pending.length > 0) {
        const missing = sequenceLength(pending[0] as number) - pending.length;
        pending = Buffer.concat([pending, chunk.subarray(0, missing)]);
        if (chunk.length < missing) return unfinishedLength(pending) === pending.length;
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

/** How many bytes at the end belong to an incomplete character: 0 to 3. */
export function unfinishedLength(bytes: Uint8Array): number {
  for (let length = 1; length <= 3 && length <= bytes.length; length++) {
    const byte = bytes[bytes.length - length] as number;
    if (byte < 0x80) return 0;
    if (byte >= 0xc0) return sequenceLength(byte) > length ? length : 0;
  }
  return 0;
}
