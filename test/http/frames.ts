/** HTTP/2 frames written by hand, RFC 9113 section 4.1, for what no client library sends. */

export const PREFACE = Buffer.from("PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n");
export const DATA = 0;
export const HEADERS = 1;
export const RST_STREAM = 3;
export const SETTINGS = 4;
export const PING = 6;
export const GOAWAY = 7;
export const WINDOW_UPDATE = 8;
export const CONTINUATION = 9;
export const END_STREAM = 0x1;
export const END_HEADERS = 0x4;

export function frame(type: number, flags: number, streamId: number, payload: Buffer = Buffer.alloc(0)): Buffer {
  const head = Buffer.alloc(9);
  head.writeUIntBE(payload.length, 0, 3);
  head.writeUInt8(type, 3);
  head.writeUInt8(flags, 4);
  head.writeUInt32BE(streamId, 5);
  return Buffer.concat([head, payload]);
}

/** What a client sends first: the preface and empty settings. */
export const HELLO = Buffer.concat([PREFACE, frame(SETTINGS, 0, 0)]);

/** Header block of `GET /` for an authority; RFC 7541 appendix A and section 6.2.2. */
export function getBlock(authority: string | undefined, fields: readonly (readonly [string, string])[] = []): Buffer {
  const parts: Buffer[] = [Buffer.from([0x82, 0x86, 0x84])];
  if (authority !== undefined) parts.push(Buffer.from([0x01]), text(authority));
  for (const [name, value] of fields) parts.push(Buffer.from([0x00]), text(name), text(value));
  return Buffer.concat(parts);
}

/** A string literal without Huffman coding, RFC 7541 section 5.2; up to 126 bytes. */
function text(value: string): Buffer {
  return Buffer.concat([Buffer.from([value.length]), Buffer.from(value, "latin1")]);
}

export function uint32(value: number): Buffer {
  const bytes = Buffer.alloc(4);
  bytes.writeUInt32BE(value);
  return bytes;
}
