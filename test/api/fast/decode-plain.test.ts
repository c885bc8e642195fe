import { create, fromBinary, type MessageInitShape, toBinary } from "@bufbuild/protobuf";
import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { CallRequestSchema } from "../../../gen/relay/v1/relay_pb.js";
import { decodePlain } from "../../../src/api/fast/decode.js";

type RequestInit = MessageInitShape<typeof CallRequestSchema>;

const encode = (init: RequestInit) => Buffer.from(toBinary(CallRequestSchema, create(CallRequestSchema, init)));

/** Compared as text: the two differ in nothing that a reader of the message could see. */
function seen(message: object | undefined): string {
  return JSON.stringify(message, (_name, value: unknown) => {
    if (value instanceof Uint8Array) return Buffer.from(value).toString("hex");
    const isObject = typeof value === "object" && value !== null && !Array.isArray(value);
    return isObject
      ? Object.fromEntries(Object.entries(value).sort(([one], [other]) => (one < other ? -1 : 1)))
      : value;
  });
}

function expectSame(bytes: Buffer): void {
  expect(seen(decodePlain(bytes))).toBe(seen(fromBinary(CallRequestSchema, bytes)));
}

const full: RequestInit = {
  providerName: "sandbox",
  userId: "ada",
  publicKey: "k".repeat(43),
  userSignature: "f".repeat(64),
  privateKey: "p".repeat(300),
  responseMode: 2,
  call: {
    url: `https://api.example.com/?q=${"x".repeat(8000)}`,
    method: "PUT",
    headers: { "content-type": "text/plain", "": "no name", empty: "", "1": "a number" },
    body: Uint8Array.from({ length: 256 }, (_, at) => at),
  },
};

describe("decodePlain()", () => {
  it.each<[string, Buffer]>([
    ["nothing", Buffer.alloc(0)],
    ["every field it knows", encode(full)],
    ["an empty call", encode({ call: {} })],
    [
      "fields in any order, strings more than once",
      Buffer.concat([encode(full), encode({ userId: "bob", responseMode: 1 })]),
    ],
    ["a header more than once", Buffer.from("221022060a016112013122060a0161120132", "hex")],
    ["a length in more bytes than it needs", Buffer.from("0a81006122020a00", "hex")],
    ["an empty string that is written", Buffer.from("0a00120022021200", "hex")],
    ["a mode that the schema does not name", Buffer.from("387f", "hex")],
    ["a length of 127 and of 128", encode({ userId: "a".repeat(127), publicKey: "b".repeat(128) })],
    ["a length of 16,383", encode({ userId: "a".repeat(16_383) })],
  ])("reads %s as protobuf-es does", (_what, bytes) => {
    expect(decodePlain(bytes)).toBeDefined();
    expectSame(bytes);
  });

  it.each<[string, Buffer]>([
    ["a string that is not ASCII", encode({ userId: "ädä" })],
    ["a header's value that is not ASCII", encode({ call: { headers: { a: "ä" } } })],
    ["a string that is not UTF-8", Buffer.from("1201ff", "hex")],
    ["a payload", encode({ call: { payload: { a: 1 } } })],
    ["a query string", encode({ call: { queryString: { a: 1 } } })],
    ["a call in two parts", Buffer.concat([encode({ call: { url: "a" } }), encode({ call: { method: "b" } })])],
    ["an unknown field", Buffer.from("7a0161", "hex")],
    ["an unknown field of the call", Buffer.from("22037a0161", "hex")],
    ["an unknown field of a header", Buffer.from("220a22080a01611201621a00", "hex")],
    ["a header without a name", Buffer.from("22052203120162", "hex")],
    ["a header without a value", Buffer.from("220522030a0161", "hex")],
    ["a header named __proto__", encode({ call: { headers: JSON.parse('{"__proto__":"a"}') } })],
    ["a field of another wire type", Buffer.from("0801", "hex")],
    ["a group", Buffer.from("0b0c", "hex")],
    ["a mode in more than a byte", Buffer.from("388001", "hex")],
    ["a length of 16,384", encode({ userId: "a".repeat(16_384) })],
    ["a length beyond the end", Buffer.from("0a0261", "hex")],
    ["a length beyond the end of the call, within the message", Buffer.from("22030a0561120161626364", "hex")],
    ["a call beyond the end", Buffer.from("22050a0161", "hex")],
    ["a header beyond the end of the call", Buffer.from("220422060a0161120162", "hex")],
    ["a tag without a length", Buffer.from("0a", "hex")],
    ["a length that is cut off", Buffer.from("0a80", "hex")],
    ["a length that is cut off by the end of the call", Buffer.from("22020a80016161", "hex")],
    ["a mode that is missing", Buffer.from("38", "hex")],
    ["a tag that no field has", Buffer.from("ff", "hex")],
    ["field number 0", Buffer.from("020161", "hex")],
  ])("leaves %s to protobuf-es", (_what, bytes) => {
    expect(decodePlain(bytes)).toBeUndefined();
  });

  const ascii = fc.string({ maxLength: 200 });
  const text = fc.oneof({ weight: 40, arbitrary: ascii }, { weight: 1, arbitrary: fc.string({ unit: "grapheme" }) });
  const requests = fc.record({
    providerName: text,
    userId: text,
    publicKey: text,
    userSignature: text,
    privateKey: text,
    responseMode: fc.integer({ min: 0, max: 3 }),
    call: fc.option(
      fc.record({
        url: text,
        method: text,
        headers: fc.dictionary(text, text, { maxKeys: 4 }),
        body: fc.uint8Array({ maxLength: 300 }),
      }),
      { nil: undefined },
    ),
  });

  it("reads whatever it reads as protobuf-es does", () => {
    let read = 0;
    fc.assert(
      fc.property(requests, ({ call, ...request }) => {
        const bytes = encode(call === undefined ? request : { ...request, call });
        if (decodePlain(bytes) === undefined) return;
        read++;
        expectSame(bytes);
      }),
      { numRuns: 500 },
    );
    expect(read).toBeGreaterThan(50);
  });

  it("reads nothing that protobuf-es refuses, and nothing else of it, whatever is broken", () => {
    const bytes = encode(full).subarray(0, 200);
    const edits = fc.array(fc.tuple(fc.nat(bytes.length - 1), fc.integer({ min: 0, max: 255 })), { maxLength: 4 });
    fc.assert(
      fc.property(edits, fc.nat(bytes.length), (changes, length) => {
        const broken = Buffer.from(bytes.subarray(0, length));
        for (const [at, byte] of changes) if (at < length) broken[at] = byte;
        if (decodePlain(broken) !== undefined) expectSame(broken);
      }),
      { numRuns: 2_000 },
    );
  });
});
