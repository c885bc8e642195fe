/** Bytes in front of each message of gRPC, and of streams of Connect: a byte of flags, and the length in four. */
export const PREFIX_BYTES = 5;
/** The message is compressed. */
export const COMPRESSED_FLAG = 0b1;

/** What stands in front of a message. */
export function prefixOf(flags: number, length: number): Buffer {
  const prefix = Buffer.from([flags, 0, 0, 0, 0]);
  prefix.writeUInt32BE(length, 1);
  return prefix;
}
