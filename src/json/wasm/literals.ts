// AssemblyScript: see json-blocks.ts.

/** How long the literal is that stands there with nothing behind it that it could go on with; 0 when none does. */
// @ts-ignore: decorator
@inline
export function literalLength(at: i32): i32 {
  const word = load<u32>(at);
  let length = 4;
  if (word !== 0x65757274 && word !== 0x6c6c756e) {
    if (word !== 0x736c6166 || load<u8>(at + 4) !== 0x65) return 0;
    length = 5;
  }
  return isLetterOrDigit(load<u8>(at + length)) ? 0 : length;
}

/** Anything else is refused, or ends the literal, without this. */
// @ts-ignore: decorator
@inline
function isLetterOrDigit(byte: u8): bool {
  return byte - 0x30 < 10 || (byte | 0x20) - 0x61 < 26;
}
