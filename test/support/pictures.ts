import { crc32, deflateSync } from "node:zlib";

/** One chunk of a PNG file. */
export function pngChunk(name: string, data: Uint8Array = new Uint8Array(0)): Buffer {
  const body = Buffer.concat([Buffer.from(name, "latin1"), data]);
  const [length, sum] = [Buffer.alloc(4), Buffer.alloc(4)];
  length.writeUInt32BE(data.length);
  sum.writeUInt32BE(crc32(body));
  return Buffer.concat([length, body, sum]);
}

/** A red picture. @param more chunks in front of the picture's own bytes. @param told the size that its head tells. */
export function pngOf(width: number, height: number, more: readonly Buffer[] = [], told = [width, height]): Buffer {
  const head = Buffer.alloc(13);
  head.writeUInt32BE(told[0] ?? 0, 0);
  head.writeUInt32BE(told[1] ?? 0, 4);
  // Eight bits of red, green and blue.
  head.set([8, 2], 8);
  const line = Buffer.alloc(1 + width * 3);
  for (let at = 1; at < line.length; at += 3) line[at] = 0xff;
  const lines = Buffer.concat(Array.from({ length: height }, () => line));
  const chunks = [pngChunk("IHDR", head), ...more, pngChunk("IDAT", deflateSync(lines)), pngChunk("IEND")];
  return Buffer.concat([Buffer.from("\x89PNG\r\n\x1a\n", "latin1"), ...chunks]);
}

/** Three pixels wide and two high, as Chromium writes them. */
export const JPEG = Buffer.from(
  "/9j/4AAQSkZJRgABAQAAAQABAAD/2wBDABALDA4MChAODQ4SERATGCgaGBYWGDEjJR0oOjM9PDkzODdASFxOQERXRTc4UG1RV19iZ2hnPk1xeXBkeFxlZ2P/2wBDARESEhgVGC8aGi9jQjhCY2NjY2NjY2NjY2NjY2NjY2NjY2NjY2NjY2NjY2NjY2NjY2NjY2NjY2NjY2NjY2NjY2P/wAARCAACAAMDASIAAhEBAxEB/8QAFQABAQAAAAAAAAAAAAAAAAAAAAX/xAAUEAEAAAAAAAAAAAAAAAAAAAAA/8QAFQEBAQAAAAAAAAAAAAAAAAAABQb/xAAUEQEAAAAAAAAAAAAAAAAAAAAA/9oADAMBAAIRAxEAPwCKALXj/9k=",
  "base64",
);
export const WEBP = Buffer.from(
  "UklGRjgAAABXRUJQVlA4ICwAAACQAQCdASoDAAIAAsBMJaACdLoAA5gA/u5DH+5sc4twV/9tD/9aH/60P+lAAA==",
  "base64",
);
export const WEBP_WITH_ALPHA = Buffer.from(
  "UklGRlwAAABXRUJQVlA4WAoAAAAQAAAAAgAAAQAAQUxQSAcAAAAAgICAgICAAFZQOCAuAAAA0AEAnQEqAwACAALATCWgAnS6AfgAA7AA/t1Ef/PzO7cX9Vv/r0fz0fz0f44QAA==",
  "base64",
);
export const WEBP_LOSSLESS = Buffer.from("UklGRhwAAABXRUJQVlA4TA8AAAAvAkAAAAcQ/Y/+ByKi/wEA", "base64");
