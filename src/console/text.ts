import { ApiError } from "./loading.js";

/**
 * Makes untrusted text safe to display: control characters, and characters that reorder or hide others, are shown as
 * their code point, as on the command line. (HTML escaping is done by the templates.)
 */
export function visibleText(text: string): string {
  return text.replace(UNSEEN, (character) => `\\u{${character.codePointAt(0)?.toString(16)}}`);
}

/** Control characters, and those that reorder or hide others. */
export const UNSEEN: RegExp = /[\p{Cc}\p{Cf}\p{Zl}\p{Zp}]/gu;

/** {@link visibleText} for each line; keeps the line breaks. */
export function visibleLines(text: string): string {
  return text.split(/\r?\n/).map(visibleText).join("\n");
}

/** Address of a view within the console; leaves out parameters that are empty. Pure. */
export function addressOf(view: string, parameters: Readonly<Record<string, string>>): string {
  const given = Object.entries(parameters).filter(([, value]) => value !== "");
  return `#/${view}${given.length === 0 ? "" : `?${new URLSearchParams(given)}`}`;
}

/** Percentiles of durations, in milliseconds. */
export interface Figures {
  readonly median: number;
  readonly p95: number;
  readonly longest: number;
}

/** Nearest-rank percentiles; undefined for an empty list. Pure. */
export function figuresOf(durations: readonly number[]): Figures | undefined {
  const sorted = durations.toSorted((one, other) => one - other);
  const at = (share: number) => sorted[Math.max(0, Math.ceil(share * sorted.length) - 1)] ?? 0;
  return sorted.length === 0 ? undefined : { median: at(0.5), p95: at(0.95), longest: at(1) };
}

/** Milliseconds as text, with decimals only for small values: `1.2 ms`, `345 ms`, `12.3 s`. Pure. */
export function msText(ms: number): string {
  return ms >= 10_000 ? `${(ms / 1000).toFixed(1)} s` : `${ms.toFixed(ms < 10 ? 1 : 0)} ms`;
}

/** A rate in calls per second, with two to three significant digits. Pure. */
export function rateText(perSecond: number): string {
  if (!Number.isFinite(perSecond) || perSecond === 0) return "0";
  return perSecond >= 100 ? perSecond.toFixed(0) : perSecond >= 1 ? perSecond.toFixed(1) : perSecond.toPrecision(2);
}

/** A count with its noun: `1 call`, `2 calls`. Pure. */
export function countText(count: number, noun: string): string {
  return `${count} ${noun}${count === 1 ? "" : "s"}`;
}

/** A share from 0 to 1 as a percentage. Pure. */
export function shareText(share: number): string {
  return `${(share * 100).toFixed(share > 0 && share < 0.1 ? 1 : 0)} %`;
}

/** Converts a local time of the browser to UTC, as used in addresses; empty if it is not a time. Pure. */
export function instantFrom(local: string): string {
  const time = new Date(local);
  return Number.isNaN(time.getTime()) ? "" : time.toISOString();
}

/** The inverse: UTC to the browser's local time, in whole seconds. Pure. */
export function localFrom(instant: string): string {
  const time = new Date(instant);
  if (Number.isNaN(time.getTime())) return "";
  return new Date(time.getTime() - time.getTimezoneOffset() * 60_000).toISOString().slice(0, 19);
}

/** The member of a request that filters by a time; no member if the time is empty or invalid. Pure. */
export function timeMember<Name extends string>(name: Name, instant: string): Partial<Record<Name, string>> {
  return localFrom(instant) === "" ? {} : ({ [name]: instant } as Partial<Record<Name, string>>);
}

/** Converts between text with one entry per line and a list. */
export const lines = {
  read: (text = ""): string[] => text.split("\n").flatMap((line) => line.trim() || []),
  write: (entries: readonly string[] = []): string => entries.join("\n"),
} as const;

/** Parses lines such as `name=value`. Throws ApiError. @param example a line, for the error. */
export function pairsFrom(
  text: string | undefined,
  separator: "=" | ":",
  path: string,
  example: string,
): Record<string, string> {
  const pairs = new Map<string, string>();
  for (const line of lines.read(text)) {
    const at = line.indexOf(separator);
    if (at < 1)
      throw new ApiError("invalid_argument", `Each line must be a name and a value, such as ${example}.`, path);
    const name = line.slice(0, at).trim();
    if (pairs.has(name)) throw givenTwice(name, path);
    pairs.set(name, line.slice(at + 1).trim());
  }
  return Object.fromEntries(pairs);
}

function givenTwice(name: string, path: string): ApiError {
  return new ApiError("invalid_argument", `${name} is given twice.`, path);
}

/** A brace, or a string; the string is captured when it is the name of a member. */
const JSON_TOKEN = /[{}]|("(?:[^"\\]|\\.)*")\s*:|"(?:[^"\\]|\\.)*"/g;

/**
 * Parses a JSON object; empty text is an empty one. Throws ApiError, also when an object in it has a name twice:
 * `JSON.parse()` would keep only the last.
 *
 * @param problem what to say about text that is not a JSON object.
 */
export function objectFrom(text: string, path: string, problem: string): Readonly<Record<string, unknown>> {
  const json = text.trim() || "{}";
  const value = json.startsWith("{") ? valueFrom(json) : undefined;
  if (value === undefined) throw new ApiError("invalid_argument", problem, path);
  const open: Set<string>[] = [];
  for (const [token, written] of json.matchAll(JSON_TOKEN)) {
    if (token === "{") open.push(new Set());
    if (token === "}") open.pop();
    if (written === undefined) continue;
    const name: string = JSON.parse(written);
    if (open.at(-1)?.has(name)) throw givenTwice(name, path);
    open.at(-1)?.add(name);
  }
  return value;
}

function valueFrom(json: string): Readonly<Record<string, unknown>> | undefined {
  try {
    return JSON.parse(json);
  } catch {
    // The caller reports it; the parser's own message would quote the text.
    return undefined;
  }
}

/** Parses a 32-bit integer; empty is 0. Throws ApiError. */
export function numberFrom(text: string | undefined, path: string): number {
  const count = Number(text?.trim() || "0");
  if (Number.isInteger(count) && count >= -(2 ** 31) && count < 2 ** 31) return count;
  throw new ApiError("invalid_argument", `${path} must be a whole number.`, path);
}
