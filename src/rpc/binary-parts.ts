import { type DescField, type DescMessage, ScalarType } from "@bufbuild/protobuf";
import { BinaryReader, WireType } from "@bufbuild/protobuf/wire";

/** Counts the fields of messages of one kind in protobuf's encoding. */
export interface BinaryParts {
  /** Whether there are at most so many, at any depth. Of what cannot be decoded, as far as it can. */
  areWithin(message: Uint8Array, most: number): boolean;
}

/** What stands in a message, by number: how to step over a field, or what stands in that. */
interface Shape {
  readonly fields: Map<number, WireType | Shape>;
  /** protobuf-es does not step over what it does not know in the entry of a map. */
  readonly isEntry: boolean;
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
  const shape = { fields: new Map<number, WireType | Shape>(), isEntry: false };
  known.set(message.typeName, shape);
  for (const field of message.fields) shape.fields.set(field.number, stepOf(field, known));
  return shape;
}

/** https://protobuf.dev/programming-guides/encoding/#maps: an entry is a message of two fields. */
function stepOf(field: DescField, known: Map<string, Shape>): WireType | Shape {
  const value = field.message !== undefined ? shapeOf(field.message, known) : wireTypeOf(field.scalar);
  if (field.fieldKind === "list" && field.message === undefined) throw new Error(`no way to step over ${field} yet`);
  if (field.fieldKind !== "map") return value;
  return { fields: new Map([[1, wireTypeOf(field.mapKey)], ...([[2, value]] as const)]), isEntry: true };
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
      if (typeof step === "object") this.count(step, reader.uint32(), depth + 1);
      else if (step !== undefined) reader.skip(step);
      else if (!isEntry) this.#skipUnknown(wireType, number);
    }
  }

  /** A group may have as many fields as bytes, and nobody writes one. */
  #skipUnknown(wireType: WireType, number: number): void {
    if (wireType === WireType.StartGroup) this.#left -= this.#reader.len - this.#reader.pos;
    if (!this.isOver) this.#reader.skip(wireType, number);
  }
}
