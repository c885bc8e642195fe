import { formatError } from "../errors.js";
import { bytesFromBase64 } from "../json/base64.js";
import type { JsonRange } from "../json/json-scan.js";
import { type JsonMember, kindAt, sliceElements, sliceMembers, textAt } from "../json/json-slice.js";
import { textFromValue } from "./query.js";
import { isJsonType, isTextType, parseMediaType } from "./text.js";

/** A body and the content-type that goes with it. */
export interface MultipartBody {
  readonly body: Buffer;
  readonly contentType: string;
}

/** A file as callers write it: `{"content": "<base64>", "type": "image/png", "name": "p.png"}`. */
export interface JsonFile {
  readonly bytes: Buffer;
  readonly type: string | undefined;
  readonly name: string | undefined;
}

/** Values by name. */
export type JsonMembers = ReadonlyMap<string, JsonRange>;

interface Part {
  /** Header lines, without the line break after the last one. */
  readonly head: string;
  readonly content: Uint8Array;
}

/** A media type with parameters, in printable ASCII: nothing that could end a header line. */
const MEDIA_TYPE = /^[\w!#$&^.+-]{1,127}\/[\w!#$&^.+-]{1,127}(?: ?;[\x20-\x7e]{0,255})?$/;

/**
 * The members of a JSON object as multipart/form-data (RFC 7578), in the order written.
 *
 * An object whose `content` is a string is a file, and so is each element of an array of such objects (under one name);
 * a file without a name gets the member's. Scalars are fields as in {@link queryFromJson}, other arrays and objects are
 * fields with their JSON text as written. `boundary`: 1 to 70 letters and digits that nobody can guess.
 *
 * Fails with CALL_FORMAT_ERROR that names the field.
 */
export function formDataFromJson(json: Uint8Array, boundary: string): MultipartBody {
  const parts = sliceMembers(json).flatMap((member, index) => formParts(json, member, fieldOf(member.key, index)));
  return { body: joinParts(parts, boundary), contentType: `multipart/form-data; boundary=${boundary}` };
}

/**
 * The members `contentPart0`, `contentPart1`, … of a JSON object as multipart/related (RFC 2387), in the order written.
 *
 * Each is `{"content": …, "contentType": …}`. A string is text when its type is (JSON, text, XML), else base64; anything
 * else is JSON text as written, `application/json` when it names no type. `boundary` as for {@link formDataFromJson}.
 *
 * Fails with CALL_FORMAT_ERROR that names the field.
 */
export function relatedFromJson(json: Uint8Array, boundary: string): MultipartBody {
  const parts = sliceMembers(json).map((member, index) => relatedPart(json, member, fieldOf(member.key, index)));
  return { body: joinParts(parts, boundary), contentType: `multipart/related; boundary=${boundary}` };
}

/** The members of an object by name: the last of each, as in JSON.parse; null counts as missing. */
export function membersByName(json: Uint8Array, object: JsonRange): JsonMembers {
  const members = new Map<string, JsonRange>();
  for (const member of sliceMembers(json, object.start, object.end)) {
    if (kindAt(json, member.start) === "null") members.delete(member.key);
    else members.set(member.key, member);
  }
  return members;
}

/**
 * Reads a file from its members. `field` is its place in the call, for example `payload.files[0]`.
 *
 * Fails with CALL_FORMAT_ERROR that names the field: `content` is missing or not base64, `type` is not a media type.
 */
export function fileFromMembers(json: Uint8Array, members: JsonMembers, field: string): JsonFile {
  const content = stringOf(json, members, "content", field);
  if (content === undefined) throw formatError(`${field}.content is missing.`);
  const bytes = requireBase64(content, field);
  return { bytes, type: mediaTypeOf(json, members, "type", field), name: stringOf(json, members, "name", field) };
}

function formParts(json: Uint8Array, member: JsonMember, field: string): Part[] {
  const isArray = kindAt(json, member.start) === "array";
  const values = isArray ? sliceElements(json, member.start, member.end) : [member];
  const objects = values.map((value) => membersByName(json, value));
  if (objects.length > 0 && objects.every((object) => isFile(json, object))) {
    return objects.map((object, index) =>
      filePart(member.key, fileFromMembers(json, object, isArray ? `${field}[${index}]` : field)),
    );
  }
  const head = `Content-Disposition: form-data; name="${escapeName(member.key)}"`;
  return [{ head, content: Buffer.from(textFromValue(json, member)) }];
}

function isFile(json: Uint8Array, members: JsonMembers): boolean {
  const content = members.get("content");
  return content !== undefined && kindAt(json, content.start) === "string";
}

function filePart(field: string, { bytes, type, name }: JsonFile): Part {
  const names = `name="${escapeName(field)}"; filename="${escapeName(name ?? field)}"`;
  const head = `Content-Disposition: form-data; ${names}\r\nContent-Type: ${type ?? "application/octet-stream"}`;
  return { head, content: bytes };
}

/**
 * As the HTML standard escapes names in form data (`"`, CR, LF), and also every other control character and a backslash
 * at the end, which some servers read as escaping the quote after it.
 */
function escapeName(name: string): string {
  return name.replace(/["\p{Cc}]|\\$/gu, encodeURIComponent);
}

function relatedPart(json: Uint8Array, member: JsonMember, field: string): Part {
  if (!/^contentPart\d{1,9}$/.test(member.key)) {
    throw formatError(`${field} is not a part: name the parts contentPart0, contentPart1 and so on.`);
  }
  const members = membersByName(json, member);
  const content = members.get("content");
  if (content === undefined) throw formatError(`${field}.content is missing.`);
  const type = mediaTypeOf(json, members, "contentType", field);
  if (kindAt(json, content.start) !== "string") {
    return { head: `Content-Type: ${type ?? "application/json"}`, content: json.subarray(content.start, content.end) };
  }
  if (type === undefined) throw formatError(`${field}.contentType is missing: it says whether content is base64.`);
  const text = textAt(json, content);
  return {
    head: `Content-Type: ${type}`,
    content: isWrittenAsText(type) ? Buffer.from(text) : requireBase64(text, field),
  };
}

/** An image is base64 also where its format is text (image/svg+xml). */
function isWrittenAsText(type: string): boolean {
  const media = parseMediaType(type);
  return !media.essence.startsWith("image/") && (isJsonType(media.essence) || isTextType(media));
}

function joinParts(parts: readonly Part[], boundary: string): Buffer {
  const chunks: Uint8Array[] = [];
  for (const { head, content } of parts) {
    chunks.push(Buffer.from(`--${boundary}\r\n${head}\r\n\r\n`), content, Buffer.from("\r\n"));
  }
  return Buffer.concat([...chunks, Buffer.from(`--${boundary}--\r\n`)]);
}

function requireBase64(text: string, field: string): Buffer {
  const bytes = bytesFromBase64(text);
  if (bytes === undefined) throw formatError(`${field}.content is not base64.`);
  return bytes;
}

function stringOf(json: Uint8Array, members: JsonMembers, key: string, field: string): string | undefined {
  const value = members.get(key);
  if (value === undefined) return undefined;
  if (kindAt(json, value.start) !== "string") throw formatError(`${field}.${key} must be a string.`);
  return textAt(json, value);
}

/** The empty text is what browsers give for a file of unknown type. */
function mediaTypeOf(json: Uint8Array, members: JsonMembers, key: string, field: string): string | undefined {
  const type = stringOf(json, members, key, field);
  if (type === undefined || type === "") return undefined;
  if (!MEDIA_TYPE.test(type)) throw formatError(`${field}.${key} is not a media type such as image/png.`);
  return type;
}

/** A member's place in the call, safe to repeat to the caller: short and without control characters. */
function fieldOf(key: string, index: number): string {
  return /^[\w.$-]{1,64}$/.test(key) ? `payload.${key}` : `payload member ${index + 1}`;
}
