import { createJsonText, stringEnd } from "./json-scan.js";

const QUOTE = 0x22;
const COLON = 0x3a;
const POINT = 0x2e;
const MINUS = 0x2d;

/**
 * A decimal of up to 15 digits survives conversion to a double, except near its smallest and largest values (IEEE 754).
 */
const SAFE_DIGITS = 15;

/** Shows whether a JSON value survives `JSON.parse()`. */
export interface JsonSurvey {
  /**
   * Whether the value of a number changes when it is read as a double and printed again: `9007199254740993`, `1e400`,
   * `0.1e-400`. The spelling does not count: `1.0` and `1e2` are exact, and so is `0.1`.
   */
  readonly hasInexactNumber: boolean;
  /** Members of all objects, repeated names included. */
  readonly memberCount: number;
}

/** Surveys valid JSON in one pass. Pure. */
export function surveyJson(bytes: Uint8Array): JsonSurvey {
  const text = createJsonText(bytes, bytes.length);
  const end = bytes.length;
  let hasInexactNumber = false;
  let memberCount = 0;
  let at = 0;
  while (at < end) {
    const byte = bytes[at] as number;
    if (byte === QUOTE) {
      at = stringEnd(text, at);
    } else if (isDigit(byte) || byte === MINUS) {
      const start = at;
      at = numberEnd(bytes, start, end);
      hasInexactNumber ||= !isShort(bytes, start, at) && isInexact(textOf(bytes, start, at));
    } else {
      if (byte === COLON) memberCount++;
      at++;
    }
  }
  return { hasInexactNumber, memberCount };
}

function isDigit(byte: number): boolean {
  return byte >= 0x30 && byte <= 0x39;
}

function numberEnd(bytes: Uint8Array, start: number, end: number): number {
  let at = start + 1;
  while (at < end) {
    const byte = bytes[at] as number;
    if (!isDigit(byte) && byte !== POINT && byte !== 0x65 && byte !== 0x45 && byte !== MINUS && byte !== 0x2b) break;
    at++;
  }
  return at;
}

/** At most 15 digits and no exponent. */
function isShort(bytes: Uint8Array, start: number, end: number): boolean {
  if (end - start > SAFE_DIGITS) return false;
  for (let at = start; at < end; at++) {
    if (((bytes[at] as number) | 0x20) === 0x65) return false;
  }
  return true;
}

function textOf(bytes: Uint8Array, start: number, end: number): string {
  return Buffer.from(bytes.buffer, bytes.byteOffset + start, end - start).toString("latin1");
}

function isInexact(text: string): boolean {
  const printed = String(Number(text));
  if (printed === text) return false;
  if (!Number.isFinite(Number(text))) return true;
  const written = decimalFrom(text);
  const kept = decimalFrom(printed);
  if (written.digits === "") return false;
  return written.digits !== kept.digits || written.exponent !== kept.exponent || written.sign !== kept.sign;
}

/** A value as `sign 0.digits × 10^exponent`, without zeros at either end of the digits; zero has no digits. */
interface Decimal {
  readonly sign: string;
  readonly digits: string;
  readonly exponent: number;
}

function decimalFrom(text: string): Decimal {
  const sign = text.startsWith("-") ? "-" : "";
  const [mantissa = "", power = "0"] = text.slice(sign.length).split(/e/i);
  const [whole = "", fraction = ""] = mantissa.split(".");
  const all = whole + fraction;
  let first = 0;
  while (all[first] === "0") first++;
  let last = all.length;
  while (last > first && all[last - 1] === "0") last--;
  return { sign, digits: all.slice(first, last), exponent: Number(power) + whole.length - first };
}
