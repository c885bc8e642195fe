// AssemblyScript: see piece-search.ts.

// Decodes an escape, and decides whether a line break is to be dropped.

/** Where the caller writes bytes; some bytes before the first and after the last are read as well. */
export const INPUT_BYTES: i32 = 65536;
export const INPUT: i32 = (memory.data(INPUT_BYTES + 16 + 64, 16) as i32) + 16;
/** By byte, two bits: whether it occurs in a text, and whether it is a base64 letter. */
export const LETTERS: i32 = memory.data(256, 16) as i32;
const IN_TEXTS: u32 = 1;
const OF_BASE64: u32 = 2;

export const LF: i32 = 0x0a;
const CR: i32 = 0x0d;
const QUOTE: i32 = 0x22;
const PERCENT: i32 = 0x25;
const BACKSLASH: i32 = 0x5c;
const LETTER_N: i32 = 0x6e;
const LETTER_R: i32 = 0x72;
const LETTER_T: i32 = 0x74;
const LETTER_U: i32 = 0x75;

/** Instead of a character: not an escape; must be read closely; cut off by the end of the input. */
export const NONE: i32 = -1;
export const UNCLEAR: i32 = -2;
const CUT: i32 = -3;

let escapeEnd: i32 = 0;
/** Set by `undoneAt()` and `isPlainEnd()`: where what they read ends. */
export let undoneEnd: i32 = 0;

/** Recognizes most escapes and line breaks that `undoneAt()` returns NONE for, in a tenth of its time. */
export function isNoneAtOnce(at: i32, length: i32): bool {
  const byte = load<u8>(INPUT + at) as i32;
  if (byte < 0x10) return !mayEndLine(load<u8>(INPUT + at - 1));
  if (byte !== BACKSLASH || at + 2 >= length) return false;
  const second = load<u8>(INPUT + at + 1) as i32;
  if (second === QUOTE) return !isLetter(QUOTE);
  if (second === LETTER_N || second === LETTER_R) return !mayEndLine(load<u8>(INPUT + at - 1));
  // U+1000 and above.
  const digit = load<u8>(INPUT + at + 2) as i32;
  return second === LETTER_U && digit > 0x30 && digit !== BACKSLASH;
}

/** Whether there is a line break of a base64 text that a base64 letter follows directly. */
export function isPlainEnd(at: i32): bool {
  undoneEnd = at + 1;
  const isPlain = load<u8>(INPUT + at) < 0x10 && (load<u8>(LETTERS + load<u8>(INPUT + at + 1)) & OF_BASE64) !== 0;
  return isPlain && mayEndLine(load<u8>(INPUT + at - 1));
}

/**
 * The decoded character of an escape, or LF for a line break within base64, including white space after it. NONE if it
 * is to be read literally.
 */
export function undoneAt(at: i32, length: i32, isStrict: bool): i32 {
  const value = valueAt(at, length);
  undoneEnd = escapeEnd;
  if (isStrict && isLead(load<u8>(INPUT + at))) return UNCLEAR;
  if (value !== LF && value !== CR) return value < NONE || isLetter(value) ? value : NONE;
  if (!mayEndLine(load<u8>(INPUT + at - 1))) return NONE;
  undoneEnd = behindSpace(undoneEnd, length);
  const follower = load<u8>(INPUT + undoneEnd) as i32;
  return undoneEnd >= length || isLead(follower) || isLetter(follower) ? LF : NONE;
}

/** Whether a text may continue over a line break after this byte: a letter of a text, or the end of an escaped one. */
function mayEndLine(byte: u32): bool {
  return load<u8>(LETTERS + byte) !== 0;
}

function isLead(byte: i32): bool {
  return byte === BACKSLASH || byte === PERCENT;
}

/** A character above U+00FF is looked up as the byte 0xff, which stands for all of them. */
function isLetter(value: i32): bool {
  return value >= 0 && (load<u8>(LETTERS + min(value, 0xff)) & IN_TEXTS) !== 0;
}

/** The index after a line break and after white space, escaped or not, that the next line begins with. */
function behindSpace(at: i32, length: i32): i32 {
  while (at < length && isSpace(valueAt(at, length))) at = escapeEnd;
  return at;
}

function isSpace(value: i32): bool {
  return value === 0x20 || value === 0x09 || value === LF || value === CR;
}

/** The character at an index, decoded if it is an escape. Sets `escapeEnd`. */
function valueAt(at: i32, length: i32): i32 {
  const byte = load<u8>(INPUT + at) as i32;
  escapeEnd = at + 1;
  if (byte === BACKSLASH) return valueInJson(length);
  return byte === PERCENT ? valueInUrl(length) : byte;
}

/** Escapes may be nested, so any number of backslashes is read as one. */
function valueInJson(length: i32): i32 {
  const isEscaped = load<u8>(INPUT + escapeEnd) === BACKSLASH;
  while (escapeEnd < length && load<u8>(INPUT + escapeEnd) === BACKSLASH) escapeEnd++;
  if (escapeEnd >= length) return CUT;
  const letter = load<u8>(INPUT + escapeEnd++) as i32;
  if (letter === LETTER_U) {
    const value = numberOf(4, length);
    // After an escaped backslash these complete another escape.
    const isAgain = value === LETTER_U || value === LETTER_N || value === LETTER_R || value === LETTER_T;
    return isAgain && isEscaped ? UNCLEAR : value;
  }
  if (letter === PERCENT) return UNCLEAR;
  if (letter === LETTER_N) return LF;
  if (letter === LETTER_R) return CR;
  if (letter === LETTER_T) return 0x09;
  if (letter === QUOTE || letter === 0x2f) return letter;
  if (letter === LF || letter === CR) escapeEnd--;
  return NONE;
}

/** A percent sign may itself be percent-encoded. */
function valueInUrl(length: i32): i32 {
  let value = PERCENT;
  while (value === PERCENT) value = numberOf(2, length);
  return value === BACKSLASH ? UNCLEAR : value;
}

/** The hexadecimal number at `escapeEnd`. An escaped digit must be read closely. */
function numberOf(digits: i32, length: i32): i32 {
  let value = 0;
  for (let count = 0; count < digits; count++) {
    if (escapeEnd >= length) return CUT;
    const digit = load<u8>(INPUT + escapeEnd) as i32;
    if (isLead(digit)) return UNCLEAR;
    const isDigit = (digit >= 0x30 && digit < 0x3a) || ((digit | 0x20) >= 0x61 && (digit | 0x20) < 0x67);
    if (!isDigit) return NONE;
    value = (value << 4) | (digit < 0x3a ? digit - 0x30 : (digit | 0x20) - 0x57);
    escapeEnd++;
  }
  return digits === 4 && isLead(value) ? UNCLEAR : value;
}
