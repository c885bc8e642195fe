import { randomBytes } from "node:crypto";
import type { JsonRange } from "../json/json-scan.js";
import {
  base64FromJson,
  elementsInSteps,
  type JsonMember,
  kindAt,
  membersInSteps,
  shortTextAt,
} from "../json/json-slice.js";
import { textSlices } from "../json/text-slices.js";
import { type Bytes, bytesOf, type Chunks, createChunks, createPace, joinedInSteps } from "../lib/chunks.js";
import type { Steps } from "../lib/turns.js";
import { formatError } from "../model/errors.js";
import { type Room, requireRoom } from "./budget.js";
import { isTextType, parseMediaType } from "./text.js";
import { fieldOf, requireShortName } from "./urlencoded.js";

/** A body and its content-type. */
interface MultipartBody {
  readonly body: Buffer;
  readonly contentType: string;
}

/** A file as callers write it: `{"content": "<base64>", "type": "image/png", "name": "p.png"}`. */
interface JsonFile {
  readonly bytes: Bytes;
  readonly type: string | undefined;
  readonly name: string | undefined;
}

/** A JSON object's values by name. */
type JsonMembers = ReadonlyMap<string, JsonRange>;

interface Part {
  /** Header lines, without the line break after the last one. */
  readonly head: string;
  readonly content: Bytes;
}

/** A media type with parameters, in printable ASCII: nothing that could end a header line. */
const MEDIA_TYPE = /^[\w!#$&^.+-]{1,127}\/[\w!#$&^.+-]{1,127}(?: ?;[\x20-\x7e]{0,255})?$/;

/**
 * Most characters in the headers of all parts: 40,000 files with ordinary names. A member's name is repeated twice for
 * each of its files: without a limit, 80 KB of payload become a gigabyte, in ten seconds.
 */
const MAX_HEADS_LENGTH = 8 * 1024 * 1024;

/**
 * Writes the members of a JSON object as multipart/form-data (RFC 7578), in the order given.
 *
 * An object whose `content` is a string is a file, and so is each element of an array of such objects (under one name);
 * a file without a name gets the member's. Scalars become fields as in {@link queryFromJson}; other arrays and objects
 * become fields with their JSON text as written.
 *
 * Fails with CALL_FORMAT_ERROR, which names the field, and with OVERLOADED where there is no room.
 *
 * @param boundary 1 to 70 unguessable letters and digits.
 * @param memory charged for each part as it is written: a part of an array may be a hundred times as long as its JSON.
 * @param explodeArrays makes each element of an array a part of its own, whatever its type.
 */
export function* formDataFromJson(
  json: Uint8Array,
  boundary: string,
  memory: Room,
  explodeArrays = false,
): Steps<MultipartBody> {
  const parts = new PartWriter(boundary, memory);
  const mayPause = createPace();
  for (const [index, member] of (yield* membersInSteps(json)).entries()) {
    const field = fieldOf(member.key, index);
    requireShortName(member.key, field);
    const isArray = kindAt(json, member.start) === "array";
    if (isArray && explodeArrays) yield* addElements(parts, json, member, field);
    else yield* addMember(parts, json, member, field, isArray);
    if (mayPause(member.end + parts.length)) yield;
  }
  return { body: yield* joinedInSteps(parts.end()), contentType: `multipart/form-data; boundary=${boundary}` };
}

/**
 * Writes the members `contentPart0`, `contentPart1`, … of a JSON object as multipart/related (RFC 2387), in order.
 *
 * Each is `{"content": …, "contentType": …}`. A string is sent as text when its type is textual (JSON, text, XML), else
 * it is decoded as base64. Any other content is sent as JSON text as written, as `application/json` by default.
 * Parameters and failures as for {@link formDataFromJson}.
 */
export function* relatedFromJson(json: Uint8Array, boundary: string, memory: Room): Steps<MultipartBody> {
  const parts = new PartWriter(boundary, memory);
  const mayPause = createPace();
  for (const [index, member] of (yield* membersInSteps(json)).entries()) {
    const field = fieldOf(member.key, index);
    parts.add(yield* relatedPart(json, member, field), field);
    if (mayPause(member.end + parts.length)) yield;
  }
  return { body: yield* joinedInSteps(parts.end()), contentType: `multipart/related; boundary=${boundary}` };
}

/** The members of an object by name. Of duplicates the last one counts, as in JSON.parse; null counts as missing. */
export function* membersByName(json: Uint8Array, object: JsonRange): Steps<JsonMembers> {
  const members = new Map<string, JsonRange>();
  for (const member of yield* membersInSteps(json, object.start, object.end)) {
    if (kindAt(json, member.start) === "null") members.delete(member.key);
    else members.set(member.key, member);
  }
  return members;
}

/**
 * Parses a file from its members. `field` is its place in the call, for example `payload.files[0]`.
 *
 * Fails with CALL_FORMAT_ERROR, which names the field, when `content` is missing or not base64, when `type` is not a
 * media type, and when a member is not a string or the name is too long.
 */
export function* fileFromMembers(json: Uint8Array, members: JsonMembers, field: string): Steps<JsonFile> {
  const content = stringAt(json, members, "content", field);
  if (content === undefined) throw formatError(`${field}.content is missing.`);
  const bytes = yield* requireBase64(json, content, field);
  const name = stringOf(json, members, "name", field);
  if (name !== undefined) requireShortName(name, field);
  return { bytes, type: mediaTypeOf(json, members, "type", field), name };
}

/**
 * Writes parts one after another. They are not kept as objects: 170,000 short ones took 115 MiB, for a body of 15 MiB.
 */
class PartWriter {
  readonly #body: Chunks = createChunks();
  readonly #boundary: string;
  readonly #memory: Room;
  #headsLength = 0;

  constructor(boundary: string, memory: Room) {
    this.#boundary = boundary;
    this.#memory = memory;
  }

  /** Bytes written so far. */
  get length(): number {
    return this.#body.length;
  }

  /** Fails with CALL_FORMAT_ERROR, which names the field, when the headers of all parts become too long. */
  add({ head, content }: Part, field: string): void {
    this.#headsLength += head.length;
    if (this.#headsLength > MAX_HEADS_LENGTH)
      throw formatError(
        `${field} makes the headers of all parts too long in total. Shorten the names, or send fewer parts.`,
      );
    const start = Buffer.from(`--${this.#boundary}\r\n${head}\r\n\r\n`);
    requireRoom(this.#memory, start.length + content.length + LINE_BREAK.length);
    this.#body.push(start);
    for (const piece of content.pieces) this.#body.push(piece);
    this.#body.push(LINE_BREAK);
  }

  end(): Chunks {
    const last = Buffer.from(`--${this.#boundary}--\r\n`);
    requireRoom(this.#memory, last.length);
    this.#body.push(last);
    return this.#body;
  }
}

const LINE_BREAK = Buffer.from("\r\n");

function* addMember(
  parts: PartWriter,
  json: Uint8Array,
  member: JsonMember,
  field: string,
  isArray: boolean,
): Steps<void> {
  const files = isArray ? yield* filesFrom(json, member) : [yield* membersByName(json, member)];
  // Escaped once: the name may be long, and there may be many files.
  const escaped = escapeName(member.key);
  let isText = true;
  for (const [index, file] of files.entries()) {
    if (!isFile(json, file)) break;
    isText = false;
    const place = isArray ? `${field}[${index}]` : field;
    parts.add(filePart(escaped, yield* fileFromMembers(json, file, place)), field);
    yield;
  }
  if (isText) parts.add(fieldPart(escaped, yield* textBytes(json, member)), field);
}

function* addElements(parts: PartWriter, json: Uint8Array, member: JsonMember, field: string): Steps<void> {
  const escaped = escapeName(member.key);
  const mayPause = createPace(parts.length);
  let index = 0;
  for (const element of elementsInSteps(json, member)) {
    if (element === undefined) {
      yield;
      continue;
    }
    const file = yield* membersByName(json, element);
    const isFilePart = isFile(json, file);
    parts.add(
      isFilePart
        ? filePart(escaped, yield* fileFromMembers(json, file, `${field}[${index}]`))
        : fieldPart(escaped, yield* textBytes(json, element)),
      field,
    );
    index += 1;
    if (mayPause(parts.length)) yield;
  }
}

/** The elements of an array of files; empty when any element is not a file. */
function* filesFrom(json: Uint8Array, array: JsonRange): Steps<JsonMembers[]> {
  const files: JsonMembers[] = [];
  for (const element of elementsInSteps(json, array)) {
    if (element === undefined) {
      yield;
      continue;
    }
    const members = yield* membersByName(json, element);
    if (!isFile(json, members)) return [];
    files.push(members);
  }
  return files;
}

/** Scalars as text, null as empty text, arrays and objects as their JSON text. */
function* textBytes(json: Uint8Array, value: JsonRange): Steps<Bytes> {
  const bytes = createChunks();
  if (kindAt(json, value.start) === "null") return bytes;
  for (const slice of textSlices(json, value)) {
    bytes.push(Buffer.from(slice));
    yield;
  }
  return bytes;
}

function isFile(json: Uint8Array, members: JsonMembers): boolean {
  const content = members.get("content");
  return content !== undefined && kindAt(json, content.start) === "string";
}

/** @param field the member's name, escaped. */
function fieldPart(field: string, content: Bytes): Part {
  return { head: `Content-Disposition: form-data; name="${field}"`, content };
}

/** @param field the member's name, escaped. */
function filePart(field: string, { bytes, type, name }: JsonFile): Part {
  const names = `name="${field}"; filename="${name === undefined ? field : escapeName(name)}"`;
  const head = `Content-Disposition: form-data; ${names}\r\nContent-Type: ${type ?? "application/octet-stream"}`;
  return { head, content: bytes };
}

/**
 * Escapes names as the HTML standard does in form data (`"`, CR, LF). Also escapes every other control character, and a
 * trailing backslash, which some servers would take to escape the closing quote.
 */
function escapeName(name: string): string {
  return name.replace(/["\p{Cc}]|\\$/gu, encodeURIComponent);
}

function* relatedPart(json: Uint8Array, member: JsonMember, field: string): Steps<Part> {
  if (!/^payload\.contentPart\d{1,9}$/.test(field)) {
    throw formatError(`${field} is not a part: name the parts contentPart0, contentPart1 and so on.`);
  }
  const members = yield* membersByName(json, member);
  const content = members.get("content");
  if (content === undefined) throw formatError(`${field}.content is missing.`);
  const type = mediaTypeOf(json, members, "contentType", field);
  if (kindAt(json, content.start) !== "string") {
    const written = bytesOf(json.subarray(content.start, content.end));
    return { head: `Content-Type: ${type ?? "application/json"}`, content: written };
  }
  if (type === undefined) throw formatError(`${field}.contentType is missing: it says whether content is base64.`);
  return {
    head: `Content-Type: ${type}`,
    content: isWrittenAsText(type) ? yield* textBytes(json, content) : yield* requireBase64(json, content, field),
  };
}

/** Images are base64 even where their format is text (image/svg+xml). */
function isWrittenAsText(type: string): boolean {
  const media = parseMediaType(type);
  return !media.essence.startsWith("image/") && isTextType(media);
}

function* requireBase64(json: Uint8Array, string: JsonRange, field: string): Steps<Bytes> {
  const bytes = yield* base64FromJson(json, string);
  if (bytes === undefined) throw formatError(`${field}.content is not base64.`);
  return bytes;
}

function stringOf(json: Uint8Array, members: JsonMembers, key: string, field: string): string | undefined {
  const string = stringAt(json, members, key, field);
  return string && shortTextAt(json, string);
}

function stringAt(json: Uint8Array, members: JsonMembers, key: string, field: string): JsonRange | undefined {
  const value = members.get(key);
  if (value === undefined) return undefined;
  if (kindAt(json, value.start) !== "string") throw formatError(`${field}.${key} must be a string.`);
  return value;
}

/** The empty string counts as missing: browsers send it for a file of unknown type. */
function mediaTypeOf(json: Uint8Array, members: JsonMembers, key: string, field: string): string | undefined {
  const type = stringOf(json, members, key, field);
  if (type === undefined || type === "") return undefined;
  if (!MEDIA_TYPE.test(type)) throw formatError(`${field}.${key} is not a media type such as image/png.`);
  return type;
}

/** Creates an unguessable multipart boundary (RFC 2046 section 5.1.1): 41 letters and digits. */
export function createBoundary(): string {
  return `relay${randomBytes(18).toString("hex")}`;
}
