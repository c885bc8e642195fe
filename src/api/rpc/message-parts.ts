import { type DescField, type DescMessage, ScalarType } from "@bufbuild/protobuf";
import { BinaryReader, WireType } from "@bufbuild/protobuf/wire";
import { StructSchema, ValueSchema } from "@bufbuild/protobuf/wkt";
import { Code, ConnectError } from "@connectrpc/connect";
import { CALL_JSON_LIMITS } from "../../call/call.js";
import { createJsonText, stringEnd } from "../../json/json-scan.js";

/**
 * Most parts of a message, of which a value in a payload has two: far beyond any API. protobuf-es makes objects of each,
 * all in one go and before anybody knows whose call it is: of ten mebibytes of empty lists five million, for which it
 * holds everybody else up for five seconds. `body` is one part, whatever stands in it.
 */
const MAX_PARTS = 200_000;

/**
 * Most keys of a message in JSON: each of payload, headers and query string may have as many as a payload of the JSON
 * route. Long ones take protobuf-es ten times as long as other parts.
 */
export const MAX_MESSAGE_KEYS: number = 3 * CALL_JSON_LIMITS.maxKeys;

/** What is said of a message that has more. */
export const TOO_MANY_KEYS = `the message has more than ${MAX_MESSAGE_KEYS} keys`;

/** What is said of a message that has more parts. */
export const TOO_MANY_PARTS = `the message has more than ${MAX_PARTS} parts; send a payload of so many values as body`;

/**
 * Refuses a message in protobuf's encoding that has too many parts: fields at any depth of what the schema says are
 * messages. What cannot be decoded is not judged beyond the place where decoding ends, too.
 *
 * @param parts of messages of its kind.
 * @throws ConnectError INVALID_ARGUMENT.
 */
export function requireFewParts(parts: BinaryParts, message: Uint8Array): void {
  if (!parts.areWithin(message, MAX_PARTS)) throw tooManyParts();
}

/** The same of a message in JSON: members, elements, objects and arrays count, and members once more as keys. */
export function requireFewPartsOfJson(message: Uint8Array): void {
  // Each has one byte or more.
  if (message.length > MAX_MESSAGE_KEYS) requireFewMarks(message);
}

const QUOTE = 0x22;
const COLON = 0x3a;
/** `,` `:` `[` `{` */
const MARKS: ReadonlySet<number> = new Set([0x2c, COLON, 0x5b, 0x7b]);

function requireFewMarks(message: Uint8Array): void {
  const text = createJsonText(message, message.length);
  let parts = 0;
  let keys = 0;
  for (let at = 0; at < message.length; at++) {
    const byte = message[at] as number;
    // One before its end, from where the loop goes on.
    if (byte === QUOTE) at = stringEnd(text, at) - 1;
    else if (MARKS.has(byte)) {
      if (++parts > MAX_PARTS) throw tooManyParts();
      if (byte === COLON && ++keys > MAX_MESSAGE_KEYS) throw new ConnectError(TOO_MANY_KEYS, Code.InvalidArgument);
    }
  }
}

function tooManyParts(): ConnectError {
  return new ConnectError(TOO_MANY_PARTS, Code.InvalidArgument);
}

/** Counts the fields of messages of one kind in protobuf's encoding. */
export interface BinaryParts {
  /**
   * Whether there are at most so many, at any depth. Of what cannot be decoded, as far as it can. What protobuf-es copies
   * while it decodes counts each time.
   */
  areWithin(message: Uint8Array, most: number): boolean;
}

/** What stands in a message, by number: how to step over a field, or what stands in that. */
interface Shape {
  readonly fields: Map<number, WireType | Shape>;
  /** protobuf-es does not step over what it does not know in the entry of a map. */
  readonly isEntry: boolean;
  /** It is one Struct in a message, which protobuf-es holds as an object: to add to it, it copies all of it. */
  readonly isCopied: boolean;
}

/** Messages within messages and entries of maps that protobuf-es reads: entries do not count there. */
const MAX_DEPTH = 200;

/** Creates a counter. It reads tags and lengths, and steps over values just as protobuf-es reads them. */
export function createBinaryParts(schema: DescMessage): BinaryParts {
  const shape = shapeOf(schema, new Map());
  return {
    areWithin(message, most) {
      const counter = new Counter(message, most);
      try {
        counter.count(shape, message.length);
      } catch {
        // protobuf-es gets no further, and says what is wrong.
      }
      return !counter.isOver;
    },
  };
}

function shapeOf(message: DescMessage, known: Map<string, Shape>): Shape {
  const found = known.get(message.typeName);
  if (found !== undefined) return found;
  const shape = { fields: new Map<number, WireType | Shape>(), isEntry: false, isCopied: false };
  known.set(message.typeName, shape);
  for (const field of message.fields) shape.fields.set(field.number, stepOf(field, known));
  return shape;
}

function stepOf(field: DescField, known: Map<string, Shape>): WireType | Shape {
  const value = field.message !== undefined ? shapeOf(field.message, known) : wireTypeOf(field.scalar);
  if (field.fieldKind === "map") return entryOf(field.mapKey, value);
  // Numbers may stand packed as well, each of which would count.
  if (field.fieldKind === "list" && typeof value !== "object" && value !== WireType.LengthDelimited)
    throw new Error(`no way to step over ${field} yet`);
  return typeof value === "object" && isCopied(field) ? { ...value, isCopied: true } : value;
}

/** https://protobuf.dev/programming-guides/encoding/#maps: an entry is a message of two fields. */
function entryOf(key: ScalarType, value: WireType | Shape): Shape {
  const fields = new Map<number, WireType | Shape>([
    [1, wireTypeOf(key)],
    [2, value],
  ]);
  return { fields, isEntry: true, isCopied: false };
}

function isCopied({ fieldKind, message, parent }: DescField): boolean {
  return (
    fieldKind === "message" && message.typeName === StructSchema.typeName && parent.typeName !== ValueSchema.typeName
  );
}

/** @param scalar undefined for an enum. */
function wireTypeOf(scalar: ScalarType | undefined): WireType {
  switch (scalar) {
    case ScalarType.STRING:
    case ScalarType.BYTES:
      return WireType.LengthDelimited;
    case ScalarType.DOUBLE:
    case ScalarType.FIXED64:
    case ScalarType.SFIXED64:
      return WireType.Bit64;
    case ScalarType.FLOAT:
    case ScalarType.FIXED32:
    case ScalarType.SFIXED32:
      return WireType.Bit32;
    default:
      return WireType.Varint;
  }
}

/** Goes through one message. */
class Counter {
  readonly #reader: BinaryReader;
  /** Parts of what would be copied, so far. */
  readonly #held = new Map<Shape, number>();
  #left: number;

  constructor(message: Uint8Array, most: number) {
    this.#reader = new BinaryReader(message);
    this.#left = most;
  }

  get isOver(): boolean {
    return this.#left < 0;
  }

  /** Ends early once there are too many. Throws where the message cannot be decoded. */
  count({ fields, isEntry }: Shape, length: number, depth = 1): void {
    if (depth > MAX_DEPTH) throw new Error("protobuf-es reads no deeper");
    const reader = this.#reader;
    const end = reader.pos + length;
    while (reader.pos < end && !this.isOver) {
      this.#left--;
      const [number, wireType] = reader.tag();
      const step = fields.get(number);
      if (typeof step === "object") this.#countInner(step, reader.uint32(), depth + 1);
      else if (step !== undefined) reader.skip(step);
      else if (!isEntry) this.#skipUnknown(wireType, number);
    }
  }

  #countInner(shape: Shape, length: number, depth: number): void {
    const held = this.#held.get(shape) ?? 0;
    this.#left -= held;
    const before = this.#left;
    this.count(shape, length, depth);
    if (shape.isCopied) this.#held.set(shape, held + before - this.#left);
  }

  /** A group may have as many fields as bytes, and nobody writes one. */
  #skipUnknown(wireType: WireType, number: number): void {
    if (wireType === WireType.StartGroup) this.#left -= this.#reader.len - this.#reader.pos;
    if (!this.isOver) this.#reader.skip(wireType, number);
  }
}
