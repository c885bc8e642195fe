import { type DescField, type DescMessage, ScalarType } from "@bufbuild/protobuf";
import { BinaryReader, WireType } from "@bufbuild/protobuf/wire";
import { StructSchema, ValueSchema } from "@bufbuild/protobuf/wkt";
import { Code, ConnectError } from "@connectrpc/connect";
import { CALL_JSON_LIMITS } from "../../call/call.js";
import { createJsonText, stringEnd } from "../../json/json-scan.js";

/**
 * Most parts of a message; a value in a payload has two. Far more than any API needs. protobuf-es creates objects for
 * each part, in one go and before the caller is known: from 10 MiB of empty lists five million, which blocks the event
 * loop for five seconds. `body` is one part, whatever it contains.
 */
const MAX_PARTS = 200_000;

/**
 * Most keys of a message in JSON: payload, headers and query string may each have as many as a payload of the JSON
 * route. A long key takes protobuf-es ten times as long as another part.
 */
export const MAX_MESSAGE_KEYS: number = 3 * CALL_JSON_LIMITS.maxKeys;

/** Error text for a message with more keys. */
export const TOO_MANY_KEYS = `the message has more than ${MAX_MESSAGE_KEYS} keys`;

/** Error text for a message with more parts. */
export const TOO_MANY_PARTS = `the message has more than ${MAX_PARTS} parts; send a payload this large in body`;

/**
 * Refuses a binary protobuf message with too many parts: fields at any depth, in whatever the schema says is a message.
 * A message that cannot be decoded is counted only up to the fault, where decoding ends as well.
 *
 * @param parts the counter for this message type.
 * @throws ConnectError INVALID_ARGUMENT.
 */
export function requireFewParts(parts: BinaryParts, message: Uint8Array): void {
  if (!parts.areWithin(message, MAX_PARTS)) throw tooManyParts();
}

/** The same for a message in JSON: members, elements, objects and arrays count as parts, and members also as keys. */
export function requireFewPartsOfJson(message: Uint8Array): void {
  // Each key and part takes at least one byte.
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
    // Minus one, since the loop increments it.
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

/** Counts the fields in binary protobuf messages of one type. */
export interface BinaryParts {
  /**
   * Whether a message has at most `most` fields, at any depth. A message that cannot be decoded is counted up to the
   * fault. What protobuf-es copies while decoding counts again for each copy.
   */
  areWithin(message: Uint8Array, most: number): boolean;
}

/** A message type: for each field number how to skip the field, or the shape of the message in it. */
interface Shape {
  readonly fields: Map<number, WireType | Shape>;
  /** A map entry; protobuf-es does not skip unknown fields in it. */
  readonly isEntry: boolean;
  /**
   * A single Struct in a message, which protobuf-es holds as a JSON object and copies whole to merge another one in.
   */
  readonly isCopied: boolean;
}

/** Messages and map entries within one another that protobuf-es reads; its own limit does not count entries. */
const MAX_DEPTH = 200;

/** Creates a counter. It reads tags and lengths, and skips values exactly as protobuf-es reads them. */
export function createBinaryParts(schema: DescMessage): BinaryParts {
  const shape = shapeOf(schema, new Map());
  return {
    areWithin(message, most) {
      const counter = new Counter(message, most);
      try {
        counter.count(shape, message.length);
      } catch {
        // protobuf-es stops at the same place, and reports the error.
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
  // A list of numbers may be packed, and each number would have to be counted.
  if (field.fieldKind === "list" && typeof value !== "object" && value !== WireType.LengthDelimited)
    throw new Error(`skipping ${field} is not supported yet`);
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

/** Counts the fields of one message. */
class Counter {
  readonly #reader: BinaryReader;
  /** Parts so far of each Struct that would be copied. */
  readonly #held = new Map<Shape, number>();
  #left: number;

  constructor(message: Uint8Array, most: number) {
    this.#reader = new BinaryReader(message);
    this.#left = most;
  }

  get isOver(): boolean {
    return this.#left < 0;
  }

  /** Stops early once there are too many. Throws when the message cannot be decoded. */
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

  /** Skips an unknown field. A group counts as many fields as bytes are left, since it may have so many. */
  #skipUnknown(wireType: WireType, number: number): void {
    if (wireType === WireType.StartGroup) this.#left -= this.#reader.len - this.#reader.pos;
    if (!this.isOver) this.#reader.skip(wireType, number);
  }
}
