import { bufferOf } from "../lib/chunks.js";
import type { Parsed } from "./application.js";

/** Largest icon file, in bytes: it is embedded in each page that shows it. */
export const MAX_ICON_BYTES = 16 * 1024;
/** Longest side, in pixels: a small file can contain a picture that takes gigabytes to render. */
const MAX_SIDE = 1024;

/** What a file says about its picture. */
interface Picture {
  /** Sizes of the frame and of each picture in it. */
  readonly sizes: ReadonlyArray<readonly [width: number, height: number]>;
  readonly isAnimated: boolean;
}

interface Format {
  readonly contentType: string;
  readonly isOf: (file: Buffer) => boolean;
  /** Reads the file to its last byte; undefined if it is truncated or has data after the picture. */
  readonly read: (file: Buffer) => Picture | undefined;
}

/** Detected by their bytes alone. No SVG: it is a document that can contain scripts and load anything. */
const FORMATS: readonly Format[] = [
  { contentType: "image/png", isOf: (file) => file.subarray(0, 8).equals(PNG_SIGNATURE), read: readPng },
  { contentType: "image/jpeg", isOf: (file) => file.readUIntBE(0, 3) === 0xffd8ff, read: readJpeg },
  {
    contentType: "image/webp",
    isOf: (file) => textAt(file, 0) === "RIFF" && textAt(file, 8) === "WEBP",
    read: readWebp,
  },
];

/**
 * Checks an application's icon: PNG, JPEG or WebP, detected by its bytes; empty for none. A file with data after its
 * picture is refused: it could also be read as something else.
 */
export function parseIcon(bytes: Uint8Array): Parsed<Uint8Array> {
  if (bytes.length === 0) return { value: bytes };
  if (bytes.length > MAX_ICON_BYTES) return { problem: `must have at most ${MAX_ICON_BYTES} bytes` };
  const file = bufferOf(bytes);
  const format = formatOf(file);
  if (format === undefined) return { problem: "must be a PNG, JPEG or WebP picture" };
  const picture = readWithin(format, file);
  if (picture === undefined) return { problem: "is cut short, damaged, or has data after the picture" };
  if (picture.isAnimated) return { problem: "must not be animated" };
  const isSmall = (side: number) => side >= 1 && side <= MAX_SIDE;
  if (picture.sizes.flat().every(isSmall)) return { value: bytes };
  return { problem: `must be at most ${MAX_SIDE} pixels wide and high` };
}

/** Media type of a stored icon; undefined for none. */
export function iconTypeOf(icon: Uint8Array): string | undefined {
  return formatOf(bufferOf(icon))?.contentType;
}

/** A stored icon as `data:` URI; undefined for none. */
export function iconUriOf(icon: Uint8Array): string | undefined {
  const contentType = iconTypeOf(icon);
  return contentType && `data:${contentType};base64,${bufferOf(icon).toString("base64")}`;
}

function formatOf(file: Buffer): Format | undefined {
  return file.length < 12 ? undefined : FORMATS.find(({ isOf }) => isOf(file));
}

function readWithin({ read }: Format, file: Buffer): Picture | undefined {
  try {
    const picture = read(file);
    return picture?.sizes.length === 0 ? undefined : picture;
  } catch (error) {
    // Thrown by Node.js when a length in the file points past its end.
    if (error instanceof RangeError) return undefined;
    throw error;
  }
}

function textAt(file: Buffer, at: number): string {
  return file.toString("latin1", at, at + 4);
}

const PNG_SIGNATURE = Buffer.from("\x89PNG\r\n\x1a\n", "latin1");

/** Portable Network Graphics (https://www.w3.org/TR/png-3/#5DataRep): chunks of a length, a name, data and a checksum. */
function readPng(file: Buffer): Picture | undefined {
  const names: string[] = [];
  for (let at = PNG_SIGNATURE.length; at < file.length && names.at(-1) !== "IEND"; ) {
    names.push(textAt(file, at + 4));
    at += 12 + file.readUInt32BE(at);
    if (names.at(-1) === "IEND" && at !== file.length) return undefined;
  }
  if (names[0] !== "IHDR" || names.at(-1) !== "IEND" || !names.includes("IDAT")) return undefined;
  return { sizes: [[file.readUInt32BE(16), file.readUInt32BE(20)]], isAnimated: names.includes("acTL") };
}

const JPEG_END = 0xd9;
const JPEG_SCAN = 0xda;

/** JPEG (ITU-T T.81 annex B): segments of a marker and a length; each scan's segment is followed by image data. */
function readJpeg(file: Buffer): Picture | undefined {
  const sizes: Array<readonly [number, number]> = [];
  let at = 2;
  while (file.readUInt8(at) === 0xff) {
    const marker = file.readUInt8(at + 1);
    if (marker === JPEG_END) return at + 2 === file.length ? { sizes, isAnimated: false } : undefined;
    // The frames that browsers read: baseline, extended, progressive.
    if (marker >= 0xc0 && marker <= 0xc2) sizes.push([file.readUInt16BE(at + 7), file.readUInt16BE(at + 5)]);
    at += 2 + file.readUInt16BE(at + 2);
    if (marker === JPEG_SCAN) at = endOfScan(file, at);
  }
  return undefined;
}

/** Where the next marker is: in a scan, 0xff is followed by 0 or by a restart marker. */
function endOfScan(file: Buffer, start: number): number {
  let at = start;
  while (at < file.length && !(file[at] === 0xff && !isOfScan(file.readUInt8(at + 1)))) at += 1;
  return at;
}

function isOfScan(byte: number): boolean {
  return byte === 0 || (byte >= 0xd0 && byte <= 0xd7);
}

/** WebP (RFC 9649 section 2): chunks of a name, a length and data, padded to an even length. */
function readWebp(file: Buffer): Picture | undefined {
  if (file.readUInt32LE(4) !== file.length - 8) return undefined;
  const sizes: Array<readonly [number, number]> = [];
  let isAnimated = false;
  let at = 12;
  while (at < file.length) {
    const name = textAt(file, at);
    const data = at + 8;
    if (name === "VP8 ") sizes.push([file.readUInt16LE(data + 6) & 0x3fff, file.readUInt16LE(data + 8) & 0x3fff]);
    if (name === "VP8L") sizes.push(losslessSizeFrom(file.readUInt32LE(data + 1)));
    if (name === "VP8X") sizes.push([file.readUIntLE(data + 4, 3) + 1, file.readUIntLE(data + 7, 3) + 1]);
    isAnimated ||= name === "ANIM" || name === "ANMF";
    const length = file.readUInt32LE(at + 4);
    at = data + length + (length % 2);
  }
  return at === file.length ? { sizes, isAnimated } : undefined;
}

/** Two 14-bit numbers, each stored minus one. */
function losslessSizeFrom(bits: number): readonly [number, number] {
  return [(bits & 0x3fff) + 1, ((bits >> 14) & 0x3fff) + 1];
}
