/**
 * Makes untrusted text safe to display: control characters, and characters that reorder or hide others, are shown as
 * their code point, as on the command line. (HTML escaping is done by the templates.)
 */
export function visibleText(text: string): string {
  return text.replace(/[\p{Cc}\p{Cf}\p{Zl}\p{Zp}]/gu, (character) => `\\u{${character.codePointAt(0)?.toString(16)}}`);
}

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
