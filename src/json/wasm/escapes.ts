// AssemblyScript: see json-blocks.ts.

/** Bit 0: the first byte is escaped. */
let escapedNext: u64 = 0;
/** Bytes that must be hexadecimal digits, from bit 0 on. */
let hexNext: u64 = 0;

export function beginEscapes(): void {
  escapedNext = hexNext = 0;
}

/** Not 0 when an escape that began in the block before goes on. */
// @ts-ignore: decorator
@inline
export function doesEscapeGoOn(): u64 {
  return escapedNext | hexNext;
}

/** Which bytes are escaped: each after a backslash that is not escaped itself. */
export function escapedOf(backslashes: u64): u64 {
  let escaped = escapedNext;
  escapedNext = 0;
  for (let rest = backslashes; rest !== 0; rest &= rest - 1) {
    const bit = rest & (0 - rest);
    if ((escaped & bit) !== 0) continue;
    escaped |= bit << 1;
    escapedNext = bit >> 63;
  }
  return escaped;
}

/** RFC 8259 section 7: what may follow a backslash, and four hexadecimal digits after `\u`. */
export function areEscapesGood(at: i32, escaped: u64): bool {
  let digits = hexNext;
  hexNext = 0;
  for (let rest = escaped; rest !== 0; rest &= rest - 1) {
    const index = ctz(rest);
    const byte = load<u8>(at + (index as i32));
    if (byte === 0x75) {
      digits |= (0x1e as u64) << index;
      if (index > 59) hexNext = (0x1e as u64) >> (64 - index);
    } else if (!isSimpleEscape(byte)) {
      return false;
    }
  }
  for (; digits !== 0; digits &= digits - 1) {
    if (!isHexDigit(load<u8>(at + (ctz(digits) as i32)))) return false;
  }
  return true;
}

/** `"`, `\`, `/`, b, f, n, r, t. */
function isSimpleEscape(byte: u8): bool {
  return (
    byte === 0x22 || byte === 0x5c || byte === 0x2f || byte === 0x62 || byte === 0x66 || byte === 0x6e || byte === 0x72 || byte === 0x74
  );
}

function isHexDigit(byte: u8): bool {
  return (byte >= 0x30 && byte <= 0x39) || ((byte | 0x20) >= 0x61 && (byte | 0x20) <= 0x66);
}

