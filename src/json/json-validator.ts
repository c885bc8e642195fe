import { slicesOf } from "../lib/chunks.js";
import type { Steps } from "../lib/turns.js";
import { createUtf8Checker } from "./json-checker.js";
import { JSON_GRAMMAR } from "./json-grammar.js";
import { plainRunEnd, spacesEnd, viewOf } from "./json-scan.js";

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

/** Judges one JSON text that arrives in chunks. */
export interface JsonValidator {
  /** Takes the next bytes, which may end anywhere. False once the text is refused; then it stays false. */
  push(chunk: Uint8Array): boolean;
  /** Whether the bytes so far are exactly one JSON value, and if not, why. Nothing is pushed after it. */
  end(): JsonVerdict;
}

/**
 * Creates a validator for one JSON text (RFC 8259).
 *
 * It accepts what `JSON.parse` accepts: one value of any kind, whitespace around it, lone surrogate escapes, repeated
 * names, numbers of any size, any depth. It also checks that the bytes are UTF-8, also over chunk borders. A byte order
 * mark is refused (RFC 8259 section 8.1): strip it first. It builds no values and needs one bit per level of nesting.
 */
export function createJsonValidator(limits: JsonLimits = {}): JsonValidator {
  const { maxDepth = Number.POSITIVE_INFINITY, maxKeys = Number.POSITIVE_INFINITY } = limits;
  const utf8 = createUtf8Checker();
  let state: number = JSON_GRAMMAR.start;
  let verdict: JsonVerdict = "valid";
  let keys = 0;
  let depth = 0;
  /** One bit per level: 1 is an object, 0 an array. Made when there is a level: most requests have just one or two. */
  let objects: Int32Array = NO_LEVELS;

  function open(isObject: boolean): number {
    const word = depth >> 5;
    if (word === objects.length) objects = grown(objects);
    const bit = 1 << (depth & 31);
    const others = (objects[word] as number) & ~bit;
    objects[word] = isObject ? others | bit : others;
    depth++;
    return isObject ? JSON_GRAMMAR.firstKey : JSON_GRAMMAR.firstElement;
  }

  function close(): number {
    depth--;
    if (depth === 0) return JSON_GRAMMAR.afterTop;
    const level = depth - 1;
    return (((objects[level >> 5] as number) >>> (level & 31)) & 1) === 1
      ? JSON_GRAMMAR.afterMember
      : JSON_GRAMMAR.afterElement;
  }

  /** The hot loop: one table step per byte; strings and indentation are skipped four bytes at a time. */
  function scan(chunk: Uint8Array): JsonVerdict {
    // Locals: an imported binding is read from memory at each use.
    const { transitions, gapByNewline, firstPlain, openKey, inKey, firstNewline, openArray, openObject } = JSON_GRAMMAR;
    const text = viewOf(chunk);
    const end = chunk.length;
    let current = state;
    let at = 0;
    while (at < end) {
      current = transitions[current + (chunk[at++] as number)] as number;
      if (current >= firstPlain) continue;
      if (current >= openKey) {
        if (current === openKey) {
          if (++keys > maxKeys) return "keys";
          current = inKey;
        }
        at = plainRunEnd(text, at, end);
      } else if (current >= firstNewline) {
        current = gapByNewline[(current - firstNewline) >> 8] as number;
        at = spacesEnd(text, at, end);
      } else if (current >= openArray) {
        if (depth >= maxDepth) return "depth";
        current = open(current === openObject);
      } else if (current === JSON_GRAMMAR.close) {
        current = close();
      } else {
        return "syntax";
      }
    }
    state = current;
    return "valid";
  }

  return {
    push(chunk) {
      if (verdict === "valid") verdict = utf8.push(chunk) ? scan(chunk) : "syntax";
      return verdict === "valid";
    },
    end() {
      if (verdict === "valid" && !(JSON_GRAMMAR.complete.has(state) && utf8.end())) verdict = "syntax";
      return verdict;
    },
  };
}

/** Judges a whole JSON text; see {@link createJsonValidator}. */
export function validateJson(bytes: Uint8Array, limits?: JsonLimits): JsonVerdict {
  const validator = createJsonValidator(limits);
  validator.push(bytes);
  return validator.end();
}

/** The same in steps. */
export function* validateJsonInSteps(bytes: Uint8Array, limits?: JsonLimits): Steps<JsonVerdict> {
  const validator = createJsonValidator(limits);
  for (const slice of slicesOf({ pieces: [bytes] })) {
    if (!validator.push(slice)) break;
    yield;
  }
  return validator.end();
}

const NO_LEVELS = new Int32Array(0);

function grown(words: Int32Array): Int32Array {
  const larger = new Int32Array(Math.max(1, words.length * 2));
  larger.set(words);
  return larger;
}
