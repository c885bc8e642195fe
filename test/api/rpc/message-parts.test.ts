import { create, type DescMessage, fromBinary, type MessageShape, toBinary } from "@bufbuild/protobuf";
import { reflect } from "@bufbuild/protobuf/reflect";
import { BinaryWriter, WireType } from "@bufbuild/protobuf/wire";
import { describe, expect, it } from "vitest";
import { type CallRequest, CallRequestSchema } from "../../../gen/relay/v1/relay_pb.js";
import { createBinaryParts, requireFewPartsOfJson } from "../../../src/api/rpc/message-parts.js";

const parts = createBinaryParts(CallRequestSchema);
const TOO_MANY = "the message has more than 200000 parts";

const request = (payload: object): CallRequest =>
  create(CallRequestSchema, {
    ...{ providerName: "p", userId: "ü", publicKey: "k", responseMode: 1 },
    call: {
      url: "https://x/",
      method: "POST",
      headers: { a: "b", c: "d" },
      body: new Uint8Array(3),
      payload,
    } as object,
  });

const NESTED = { a: [1, "b", null, true, [], {}, [[{ deep: [0.5] }]]], "": { ü: "x".repeat(300) }, text: "y" };

/** The number that `areWithin()` takes for enough, by looking. */
function countOf(message: Uint8Array): number {
  let count = 0;
  while (!parts.areWithin(message, count)) count++;
  return count;
}

/** What protobuf-es has made: fields that are set, elements, entries, and fields that it does not know. */
function partsOf(desc: DescMessage, message: MessageShape<DescMessage>): number {
  const reflected = reflect(desc, message, false);
  let count = reflected.getUnknown()?.length ?? 0;
  for (const field of desc.fields) {
    if (!reflected.isSet(field)) continue;
    const value = reflected.get(field) as never;
    if (field.fieldKind === "message") count += 1 + partsOf(field.message, (value as { message: never }).message);
    else if (field.fieldKind === "list" || field.fieldKind === "map") {
      const inner = field.message;
      for (const each of (value as Iterable<unknown> & { values(): Iterable<{ message: never }> }).values()) {
        count += 1 + (inner === undefined ? 0 : partsOf(inner, each.message));
      }
    } else count += 1;
  }
  return count;
}

/** A generator of numbers, the same each time (https://en.wikipedia.org/wiki/Xorshift). */
function createRandom(seed: number): (below: number) => number {
  let state = seed;
  return (below) => {
    state ^= state << 13;
    state ^= state >>> 17;
    state ^= state << 5;
    return (state >>> 0) % below;
  };
}

describe("the parts of a message in protobuf", () => {
  it("are its fields, at any depth, and never what stands in a string or in bytes", () => {
    const few = request({ a: 1 });
    // 4 and `call`; its url, method, body; headers with name and value twice; payload, entry, name, value, number.
    expect(countOf(toBinary(CallRequestSchema, few))).toBe(5 + 3 + 6 + 5);
    (few.call as { body: Uint8Array }).body = new Uint8Array(100_000);
    expect(countOf(toBinary(CallRequestSchema, few))).toBe(19);
  });

  it("are at least what protobuf-es makes of it, however it is written", () => {
    const random = createRandom(20_261_128);
    const good = toBinary(CallRequestSchema, request(NESTED));
    let decoded = 0;
    for (let round = 0; round < 20_000; round++) {
      const bytes = new Uint8Array(good);
      for (let change = 1 + random(4); change > 0; change--) bytes[random(bytes.length)] = random(256);
      let message: CallRequest;
      try {
        message = fromBinary(CallRequestSchema, bytes);
      } catch {
        continue;
      }
      decoded++;
      const made = partsOf(CallRequestSchema, message as never);
      expect(parts.areWithin(bytes, made - 1), Buffer.from(bytes).toString("hex")).toBe(false);
    }
    expect(decoded).toBeGreaterThan(1000);
  });

  it.each<[string, (writer: BinaryWriter) => BinaryWriter]>([
    ["behind a field of another wire type", (writer) => writer.tag(1, WireType.Bit64).string("seven..")],
    ["behind a group", (writer) => writer.tag(99, WireType.StartGroup).tag(99, WireType.EndGroup)],
    ["behind a message that ends too early", (writer) => writer.tag(4, WireType.LengthDelimited).raw(OVERRUN)],
    ["in a group", (writer) => writer.tag(99, WireType.StartGroup)],
  ])("are counted %s", (_where, before) => {
    const payload = { a: Array.from({ length: 300 }, () => []) };
    const message = before(new BinaryWriter())
      .raw(toBinary(CallRequestSchema, request(payload)))
      .finish();
    expect(parts.areWithin(message, 600)).toBe(false);
  });

  it("of one that cannot be decoded count as far as it can", () => {
    const message = toBinary(CallRequestSchema, request(NESTED));
    expect(parts.areWithin(message.subarray(0, -1), 1000)).toBe(true);
    // Lists in lists: protobuf-es gives up at a depth of 100.
    let deep = new Uint8Array();
    for (let depth = 0; depth < 5000; depth++) {
      deep = new BinaryWriter()
        .tag(depth % 2 === 0 ? 6 : 1, WireType.LengthDelimited)
        .bytes(deep)
        .finish();
    }
    const payload = new BinaryWriter().tag(1, WireType.LengthDelimited).bytes(deep).finish();
    const call = new BinaryWriter().tag(3, WireType.LengthDelimited).bytes(payload).finish();
    expect(parts.areWithin(new BinaryWriter().tag(4, WireType.LengthDelimited).bytes(call).finish(), 100_000)).toBe(
      true,
    );
  });
});

/** `call`, of two bytes: a url that has five, and goes on behind it. */
const OVERRUN = new BinaryWriter()
  .uint32(2)
  .tag(1, WireType.LengthDelimited)
  .uint32(5)
  .raw(Buffer.from("12345"))
  .finish();

describe("the parts of a message in JSON", () => {
  const judge = (text: string) => () => requireFewPartsOfJson(Buffer.from(text));

  it.each([
    ["elements", `[${"1,".repeat(200_001)}1]`],
    ["lists", `[${"[]".repeat(200_001)}`],
    ["objects", "{".repeat(200_001)],
    ["what follows a string with escapes", `["\\\\","\\"",${"1,".repeat(200_001)}1]`],
  ])("are %s", (_what, text) => {
    expect(judge(text)).toThrow(TOO_MANY);
  });

  it("are keys as well, of which there may be fewer", () => {
    const members = (count: number) => `{${'"k":1,'.repeat(count)}"k":1}`;
    expect(judge(members(29_999))).not.toThrow();
    expect(judge(members(30_000))).toThrow("the message has more than 30000 keys");
  });

  it.each([
    ["in a string", `["${"[1,{:".repeat(100_000)}"]`],
    ["in a string with escapes", `["${'\\",\\\\'.repeat(100_000)}"]`],
    ["in a string that does not end", `["${"[1,{:".repeat(100_000)}`],
    ["so many as there may be", `[${"1,".repeat(199_998)}1]`],
  ])("are not what stands %s", (_where, text) => {
    expect(judge(text)).not.toThrow();
  });
});
