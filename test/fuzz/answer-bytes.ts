import { brotliCompressSync, deflateSync, gzipSync } from "node:zlib";
import type { AnswerInput, Coding, Edit, Framing } from "./answer-inputs.js";
import { spelledToken } from "./token-spellings.js";

/** An answer ready to be written. */
export interface AnswerBytes {
  /** In this order, each as a write of its own. */
  readonly writes: readonly Buffer[];
  /** The body before any coding. */
  readonly body: Buffer;
  /** Where the token stands in the body in some form. */
  readonly hasEcho: boolean;
}

/** Ten mebibytes of nothing. */
const BOMBS: ReadonlyMap<string, Buffer> = new Map([
  ["gzip", gzipSync(Buffer.alloc(10 * 1024 * 1024))],
  ["br", brotliCompressSync(Buffer.alloc(10 * 1024 * 1024))],
  ["deflate", deflateSync(Buffer.alloc(10 * 1024 * 1024))],
]);

/** Puts an answer together for the token of the request. Pure. */
export function bytesFromAnswer(input: AnswerInput, token: string): AnswerBytes {
  const fill = (text: string) => filled(text, token);
  const body = typeof input.body === "string" ? Buffer.from(fill(input.body)) : Buffer.from(input.body);
  const hasEcho = typeof input.body === "string" && input.body.includes("<<");
  const coded = codedBody(input.coding, body);
  const { lines, bytes } = framedBody(input.framing, coded, fill);
  const head = [
    input.statusLine,
    ...input.fields,
    ...(input.contentType === undefined ? [] : [`Content-Type: ${input.contentType}`]),
    ...(input.coding.name === "" ? [] : [`Content-Encoding: ${input.coding.name}`]),
    ...lines,
  ];
  const whole = Buffer.concat([
    Buffer.from(fill(`${input.interim.join("")}${head.join("\r\n")}\r\n\r\n`), "latin1"),
    bytes,
    Buffer.from(input.stray, "latin1"),
  ]);
  return { writes: splitAt(input.edits.reduce(edited, whole), input.splits), body, hasEcho };
}

function filled(text: string, token: string): string {
  return text.includes("<<") ? text.replace(/<<(\w+)>>/g, (_, form: string) => formOf(form, token)) : text;
}

function formOf(form: string, token: string): string {
  const [, kind, seed] = /^(spelled|spelledJson)_(\d+)$/.exec(form) ?? [];
  if (kind !== undefined) {
    const { text } = spelledToken(token, Number(seed));
    return kind === "spelled" ? text : JSON.stringify(text).slice(1, -1);
  }
  const base64 = (lead: string) => Buffer.from(lead + token).toString("base64");
  switch (form) {
    case "base64":
      return base64("");
    case "base64_1":
      return base64("u");
    case "base64_2":
      return base64("me");
    case "base64url":
      return Buffer.from(token).toString("base64url");
    case "url":
      return encodeURIComponent(token);
    case "urlLower":
      return encodeURIComponent(token).replace(/%../g, (triplet) => triplet.toLowerCase());
    case "json":
      return token.replaceAll("/", "\\/");
    case "urlPython":
      return encodeURIComponent(token).replaceAll("%2F", "/");
    case "jsonDotNet":
      return token.replaceAll("+", "\\u002B");
    case "jsonGson":
      return token.replaceAll("=", "\\u003d");
    case "jsonAll":
      return token.replace(/\W/g, (character) => `\\u00${character.charCodeAt(0).toString(16)}`);
    default:
      return token;
  }
}

function codedBody(coding: Coding, body: Buffer): Buffer {
  if (coding.kind === "right") return compressed(coding.name, body);
  const name = coding.name.trim().toLowerCase().replace("x-", "");
  const whole = compressed(name, body);
  switch (coding.bytes) {
    case "plain":
      return body;
    case "cut":
      return whole.subarray(0, whole.length >> 1);
    case "twice":
      return Buffer.concat([whole, whole]);
    case "junk":
      return Buffer.concat([whole, Buffer.from("junk")]);
    case "bomb":
      return BOMBS.get(name) ?? whole;
  }
}

function compressed(name: string, body: Buffer): Buffer {
  if (name === "gzip") return gzipSync(body);
  if (name === "br") return brotliCompressSync(body);
  return name === "deflate" ? deflateSync(body) : body;
}

function framedBody(
  framing: Framing,
  body: Buffer,
  fill: (text: string) => string,
): { lines: string[]; bytes: Buffer } {
  switch (framing.kind) {
    case "length":
      return { lines: [`Content-Length: ${Math.max(0, body.length + framing.delta)}`], bytes: body };
    case "chunked":
      return { lines: ["Transfer-Encoding: chunked"], bytes: chunkedBody(framing, body, fill) };
    case "close":
      return { lines: [], bytes: body };
    case "lines":
      return { lines: [...framing.lines], bytes: body };
  }
}

function chunkedBody(
  framing: Extract<Framing, { kind: "chunked" }>,
  body: Buffer,
  fill: (text: string) => string,
): Buffer {
  const parts: Buffer[] = [];
  const chunk = (bytes: Buffer) => {
    if (bytes.length === 0) return;
    parts.push(
      Buffer.from(`${bytes.length.toString(16)}${fill(framing.extension)}\r\n`, "latin1"),
      bytes,
      Buffer.from("\r\n"),
    );
  };
  let at = 0;
  for (const size of framing.sizes) {
    chunk(body.subarray(at, at + size));
    at += size;
  }
  chunk(body.subarray(at));
  const trailers = framing.trailers.map((line) => `${fill(line)}\r\n`).join("");
  return Buffer.concat([...parts, Buffer.from(`0\r\n${trailers}\r\n`)]);
}

function edited(bytes: Buffer, { at, cut, bytes: inserted }: Edit): Buffer {
  const start = Math.floor(at * bytes.length);
  return Buffer.concat([bytes.subarray(0, start), Buffer.from(inserted as string), bytes.subarray(start + cut)]);
}

function splitAt(bytes: Buffer, fractions: readonly number[]): Buffer[] {
  const ends = fractions.map((fraction) => Math.floor(fraction * bytes.length)).sort((a, b) => a - b);
  return [...ends, bytes.length]
    .map((end, at) => bytes.subarray(ends[at - 1] ?? 0, end))
    .filter(({ length }) => length > 0);
}
