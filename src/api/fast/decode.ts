import { fromBinary, fromJsonString } from "@bufbuild/protobuf";
import {
  type CallDescription,
  CallDescriptionSchema,
  type CallRequest,
  CallRequestSchema,
} from "../../../gen/relay/v1/relay_pb.js";
import type { JsonRange } from "../../json/json-scan.js";
import { base64FromJson, kindAt, membersInSteps } from "../../json/json-slice.js";
import { validateJsonInSteps } from "../../json/json-validator.js";
import { joinedInSteps, SLICE_BYTES } from "../../lib/chunks.js";
import type { Steps } from "../../lib/turns.js";
import { formatError } from "../../model/errors.js";
import { createBinaryParts, MAX_MESSAGE_KEYS, requireFewParts } from "../rpc/message-parts.js";
import { JSON_OPTIONS, PREFIX_BYTES } from "../rpc/row.js";
import type { FastForm } from "./answer.js";
import { tagByte } from "./wire-text.js";

const PARTS = createBinaryParts(CallRequestSchema);

/** The message of a body; undefined for one that cannot be decoded: connect-node has the words for it. */
export function decodeRequest(form: FastForm, body: Buffer): CallRequest | undefined {
  try {
    switch (form) {
      case "grpc":
      case "grpc-web":
        return decodeBinary(body.subarray(PREFIX_BYTES));
      case "proto":
        return decodeBinary(body);
      case "json":
        return fromJsonString(CallRequestSchema, JSON_OPTIONS.textDecoder.decode(body), JSON_OPTIONS);
    }
  } catch {
    // connect-node decodes it once more, and says what is wrong.
    return undefined;
  }
}

function decodeBinary(bytes: Buffer): CallRequest {
  // Plain lengths are short, so a long message is not plain; and a short one that is has few parts.
  const plain = bytes.length <= SLICE_BYTES ? decodePlain(bytes) : undefined;
  if (plain !== undefined) return plain;
  requireFewParts(PARTS, bytes);
  return fromBinary(CallRequestSchema, bytes);
}

const { field: REQUEST } = CallRequestSchema;
const PROVIDER_NAME = tagByte(REQUEST.providerName, "lengthDelimited");
const USER_ID = tagByte(REQUEST.userId, "lengthDelimited");
const PUBLIC_KEY = tagByte(REQUEST.publicKey, "lengthDelimited");
const CALL = tagByte(REQUEST.call, "lengthDelimited");
const USER_SIGNATURE = tagByte(REQUEST.userSignature, "lengthDelimited");
const PRIVATE_KEY = tagByte(REQUEST.privateKey, "lengthDelimited");
const RESPONSE_MODE = tagByte(REQUEST.responseMode, "varint");
const { field: DESCRIPTION } = CallDescriptionSchema;
const URL = tagByte(DESCRIPTION.url, "lengthDelimited");
const METHOD = tagByte(DESCRIPTION.method, "lengthDelimited");
const HEADERS = tagByte(DESCRIPTION.headers, "lengthDelimited");
const BODY = tagByte(DESCRIPTION.body, "lengthDelimited");
/** An entry of a map is a message of two fields, whatever the map. */
const KEY = tagByte({ number: 1 }, "lengthDelimited");
const VALUE = tagByte({ number: 2 }, "lengthDelimited");

/**
 * A CallRequest as most clients write it for most calls: strings in ASCII, no Struct, nothing twice that would have to be
 * merged. protobuf-es, which reads by reflection, makes the same of it in 6.4 µs instead of 1.4, of the 64 of a call.
 * Undefined for everything else, good or bad: that is for protobuf-es to read.
 */
export function decodePlain(bytes: Buffer): CallRequest | undefined {
  const input = new PlainInput(bytes);
  const end = bytes.length;
  const request: CallRequest = {
    $typeName: CallRequestSchema.typeName,
    providerName: "",
    userId: "",
    publicKey: "",
    userSignature: "",
    privateKey: "",
    responseMode: 0,
  };
  while (input.hasMore(end)) readField(input, end, request);
  return input.isPlain ? request : undefined;
}

function readField(input: PlainInput, end: number, request: CallRequest): void {
  switch (input.byte(end)) {
    case PROVIDER_NAME:
      request.providerName = input.string(end);
      return;
    case USER_ID:
      request.userId = input.string(end);
      return;
    case PUBLIC_KEY:
      request.publicKey = input.string(end);
      return;
    case CALL:
      if (request.call === undefined) request.call = readDescription(input, input.stop(end));
      else input.giveUp();
      return;
    case USER_SIGNATURE:
      request.userSignature = input.string(end);
      return;
    case PRIVATE_KEY:
      request.privateKey = input.string(end);
      return;
    case RESPONSE_MODE:
      request.responseMode = input.byte(end);
      return;
    default:
      input.giveUp();
  }
}

function readDescription(input: PlainInput, end: number): CallDescription {
  const call: CallDescription = {
    $typeName: CallDescriptionSchema.typeName,
    url: "",
    method: "",
    headers: {},
    body: new Uint8Array(),
    explodeArrays: false,
  };
  while (input.hasMore(end)) readDescriptionField(input, end, call);
  return call;
}

function readDescriptionField(input: PlainInput, end: number, call: CallDescription): void {
  switch (input.byte(end)) {
    case URL:
      call.url = input.string(end);
      return;
    case METHOD:
      call.method = input.string(end);
      return;
    case HEADERS:
      readHeader(input, input.stop(end), call.headers);
      return;
    case BODY:
      call.body = input.bytes(end);
      return;
    default:
      input.giveUp();
  }
}

/** Both fields of an entry, in their order, as everybody writes them. */
function readHeader(input: PlainInput, end: number, headers: CallDescription["headers"]): void {
  if (input.byte(end) !== KEY) input.giveUp();
  const name = input.string(end);
  if (input.byte(end) !== VALUE) input.giveUp();
  const value = input.string(end);
  if (input.hasMore(end) || name === "__proto__") input.giveUp();
  headers[name] = value;
}

/**
 * Protobuf of a kind that needs no library: tags and lengths of few bytes, strings in ASCII. The first byte that is
 * anything else ends it for good, so that whoever reads checks once, at the end.
 *
 * https://protobuf.dev/programming-guides/encoding/
 */
class PlainInput {
  /** Whether everything so far was of that kind. */
  isPlain = true;
  readonly #bytes: Buffer;
  #at = 0;

  constructor(bytes: Buffer) {
    this.#bytes = bytes;
  }

  /** Whether something is left before `end`. */
  hasMore(end: number): boolean {
    return this.isPlain && this.#at < end;
  }

  /** The next byte: a tag, or a number below 128. */
  byte(end: number): number {
    if (this.#at >= end) return this.giveUp();
    const byte = this.#bytes[this.#at++] as number;
    return byte < 0x80 ? byte : this.giveUp();
  }

  /** A length below 16,384, and then where what it measures ends. */
  stop(end: number): number {
    const bytes = this.#bytes;
    let length = bytes[this.#at++] ?? 0;
    if (length >= 0x80) {
      const high = bytes[this.#at++] ?? 0x80;
      length = high < 0x80 ? (high << 7) | (length & 0x7f) : end;
    }
    const stop = this.#at + length;
    return stop <= end ? stop : this.giveUp();
  }

  /** A copy: a part of a longer text would hold on to all of it. */
  string(end: number): string {
    const stop = this.stop(end);
    const start = this.#at;
    for (; this.#at < stop; this.#at++) if ((this.#bytes[this.#at] as number) >= 0x80) this.giveUp();
    return this.isPlain ? this.#bytes.toString("latin1", start, stop) : "";
  }

  /** The bytes themselves. */
  bytes(end: number): Uint8Array<ArrayBuffer> {
    const stop = this.stop(end);
    const start = this.#at;
    this.#at = stop;
    return this.#bytes.subarray(start, stop) as Uint8Array<ArrayBuffer>;
  }

  /** From here on it is not plain. */
  giveUp(): 0 {
    this.isPlain = false;
    this.#at = this.#bytes.length;
    return 0;
  }
}

/**
 * What is nested deeper than protobuf-es reads is for it to refuse, however many keys follow: it has its own words, and is
 * soon there.
 */
const LIMITS = { maxDepth: 100, maxKeys: MAX_MESSAGE_KEYS };

/**
 * Reads a large CallRequest in JSON whose size is that of `body`: protobuf-es, which would take it in one go, reads the
 * rest of it. Undefined for everything else, good or bad: that is for protobuf-es to read, or to refuse.
 *
 * But what has more members than any call gets no further: protobuf-es would hold everybody up with it for a second,
 * and a list of them would take many times the memory that it is counted with, for each request that comes at the same
 * time. Fails with CALL_FORMAT_ERROR.
 */
export function* requestFromLargeJson(text: Buffer): Steps<CallRequest | undefined> {
  const body = (yield* isJsonInSteps(text)) ? yield* bodyOf(text) : undefined;
  // protobuf-es takes no data URL.
  const bytes = body && (yield* base64FromJson(text, body, false));
  if (body === undefined || bytes === undefined) return undefined;
  // Before the rest is read, which may be much larger as a message than as text: it waits for no turn.
  const joined = yield* joinedInSteps(bytes);
  const others = Buffer.concat([text.subarray(0, body.start), EMPTY_STRING, text.subarray(body.end)]);
  const request = parsed(others);
  if (request?.call === undefined) return undefined;
  request.call.body = joined as Uint8Array<ArrayBuffer>;
  return request;
}

const EMPTY_STRING = Buffer.from('""');

function* isJsonInSteps(text: Buffer): Steps<boolean> {
  const verdict = yield* validateJsonInSteps(text, LIMITS);
  if (verdict === "keys") throw formatError(`The message has more than ${LIMITS.maxKeys} keys.`);
  return verdict === "valid";
}

/** The string of `body` in `call`. Where either stands twice, protobuf-es refuses the rest. */
function* bodyOf(text: Buffer): Steps<JsonRange | undefined> {
  const call = (yield* membersInSteps(text)).find(({ key }) => key === "call");
  if (call === undefined) return undefined;
  const body = (yield* membersInSteps(text, call.start, call.end)).find(({ key }) => key === "body");
  return body !== undefined && kindAt(text, body.start) === "string" ? body : undefined;
}

function parsed(text: Buffer): CallRequest | undefined {
  try {
    return fromJsonString(CallRequestSchema, JSON_OPTIONS.textDecoder.decode(text), JSON_OPTIONS);
  } catch {
    // protobuf-es reads it once more, as it came.
    return undefined;
  }
}
