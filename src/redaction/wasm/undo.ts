// AssemblyScript: see piece-search.ts.

// What an escape in a text stands for, and whether the end of a line stands for nothing.

/** Where the caller puts bytes; some more are read in front of the first and behind the last. */
export const INPUT_BYTES: i32 = 65536;
export const INPUT: i32 = (memory.data(INPUT_BYTES + 16 + 64, 16) as i32) + 16;
/** For each byte, whether it may be in a text, and whether it is of base64: a bit for each. */
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

/** What an escape stands for that stands for no character: it is none, it is part of another one, or its end is cut off. */
export const NONE: i32 = -1;
export const UNCLEAR: i32 = -2;
const CUT: i32 = -3;

let escapeEnd: i32 = 0;
/** Behind what `undoneAt()` or `isPlainEnd()` has read. */
export let undoneEnd: i32 = 0;

/** Tells most of those in ordinary texts that stand as they are, in a tenth of the time that `undoneAt()` takes. */
export function isNoneAtOnce(at: i32, length: i32): bool {
  const byte = load<u8>(INPUT + at) as i32;
  if (byte < 0x10) return !mayEndLine(load<u8>(INPUT + at - 1));
  if (byte !== BACKSLASH || at + 2 >= length) return false;
  const second = load<u8>(INPUT + at + 1) as i32;
  if (second === QUOTE) return !isLetter(QUOTE);
  if (second === LETTER_N || second === LETTER_R) return !mayEndLine(load<u8>(INPUT + at - 1));
  // Beyond U+0FFF.
  const digit = load<u8>(INPUT + at + 2) as i32;
  return second === LETTER_U && digit > 0x30 && digit !== BACKSLASH;
}

/** Whether it is the end of a line of a text, with a letter of base64 behind it: no white space, and no escape. */
export function isPlainEnd(at: i32): bool {
  undoneEnd = at + 1;
  const isPlain = load<u8>(INPUT + at) < 0x10 && (load<u8>(LETTERS + load<u8>(INPUT + at + 1)) & OF_BASE64) !== 0;
  return isPlain && mayEndLine(load<u8>(INPUT + at - 1));
}

/**
 * What an escape stands for, or LF for the end of a line within base64 and the white space behind it. NONE for what stands
 * as it is.
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

/** Whether a text may go on over an end of a line behind it: a letter of one, or the last of an escape of one. */
function mayEndLine(byte: u32): bool {
  return load<u8>(LETTERS + byte) !== 0;
}

function isLead(byte: i32): bool {
  return byte === BACKSLASH || byte === PERCENT;
}

/** Of more than a byte, only what the first byte of UTF-8 may be counts. */
function isLetter(value: i32): bool {
  return value >= 0 && (load<u8>(LETTERS + min(value, 0xff)) & IN_TEXTS) !== 0;
}

/** Behind the end of a line, and the white space that the next one may begin with, escaped or not. */
function behindSpace(at: i32, length: i32): i32 {
  while (at < length && isSpace(valueAt(at, length))) at = escapeEnd;
  return at;
}

function isSpace(value: i32): bool {
  return value === 0x20 || value === 0x09 || value === LF || value === CR;
}

/** What is read at a place, which goes to `escapeEnd`. */
function valueAt(at: i32, length: i32): i32 {
  const byte = load<u8>(INPUT + at) as i32;
  escapeEnd = at + 1;
  if (byte === BACKSLASH) return valueInJson(length);
  return byte === PERCENT ? valueInUrl(length) : byte;
}

/** Each escape may be escaped again: what several backslashes stand for depends on what is behind them, or on nothing. */
function valueInJson(length: i32): i32 {
  const isEscaped = load<u8>(INPUT + escapeEnd) === BACKSLASH;
  while (escapeEnd < length && load<u8>(INPUT + escapeEnd) === BACKSLASH) escapeEnd++;
  if (escapeEnd >= length) return CUT;
  const letter = load<u8>(INPUT + escapeEnd++) as i32;
  if (letter === LETTER_U) {
    const value = numberOf(4, length);
    // With a backslash in front that is escaped itself, these make an escape again.
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

/** A percent sign may be escaped again, too. */
function valueInUrl(length: i32): i32 {
  let value = PERCENT;
  while (value === PERCENT) value = numberOf(2, length);
  return value === BACKSLASH ? UNCLEAR : value;
}

/** Of hexadecimal digits. A digit that is escaped is read closely. */
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
