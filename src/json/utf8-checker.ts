import { isUtf8 } from "node:buffer";

const NOTHING: Uint8Array = new Uint8Array(0);

/** Checks UTF-8 (RFC 3629) chunk by chunk; a chunk may end inside a character. */
export interface Utf8Checker {
  /** False when the bytes so far cannot be the beginning of valid UTF-8. */
  push(chunk: Uint8Array): boolean;
  /** False when the text stops inside a character. */
  end(): boolean;
}

/** Creates a checker for one text. It keeps at most 3 bytes between chunks. */
export function createUtf8Checker(): Utf8Checker {
  let pending = NOTHING;
  return {
    push(chunk) {
      let rest = chunk;
      if (pending.length > 0) {
        const missing = sequenceLength(pending[0] as number) - pending.length;
        pending = Buffer.concat([pending, chunk.subarray(0, missing)]);
        if (chunk.length < missing) return true;
        if (!isUtf8(pending)) return false;
        rest = chunk.subarray(missing);
      }
      const whole = rest.length - unfinishedLength(rest);
      if (whole === rest.length) {
        pending = NOTHING;
        return isUtf8(rest);
      }
      // A copy: the caller may use the chunk's memory again.
      pending = new Uint8Array(rest.subarray(whole));
      return isUtf8(rest.subarray(0, whole));
    },
    end: () => pending.length === 0,
  };
}

function sequenceLength(lead: number): number {
  if (lead >= 0xf0) return 4;
  return lead >= 0xe0 ? 3 : 2;
}

/** How many bytes at the end begin a character that is not complete: 0 to 3. */
function unfinishedLength(bytes: Uint8Array): number {
  for (let length = 1; length <= 3 && length <= bytes.length; length++) {
    const byte = bytes[bytes.length - length] as number;
    if (byte < 0x80) return 0;
    if (byte >= 0xc0) return sequenceLength(byte) > length ? length : 0;
  }
  return 0;
}
