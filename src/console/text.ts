/**
 * Text from outside as it is safe to look at: control characters and those that turn or hide others are shown as their
 * code, as on the command line. It never becomes markup in any case.
 */
export function visibleText(text: string): string {
  return text.replace(/[\p{Cc}\p{Cf}\p{Zl}\p{Zp}]/gu, (character) => `\\u{${character.codePointAt(0)?.toString(16)}}`);
}

/** The same of a text of several lines, which stay lines. */
export function visibleLines(text: string): string {
  return text.split(/\r?\n/).map(visibleText).join("\n");
}

/** What some durations look like, in milliseconds. */
export interface Figures {
  readonly median: number;
  readonly p95: number;
  readonly longest: number;
}

/** Nearest-rank percentiles; undefined for none. Pure. */
export function figuresOf(durations: readonly number[]): Figures | undefined {
  const sorted = durations.toSorted((one, other) => one - other);
  const at = (share: number) => sorted[Math.max(0, Math.ceil(share * sorted.length) - 1)] ?? 0;
  return sorted.length === 0 ? undefined : { median: at(0.5), p95: at(0.95), longest: at(1) };
}

/** Milliseconds as a person reads them: more digits where they tell something. Pure. */
export function msText(ms: number): string {
  return ms >= 10_000 ? `${(ms / 1000).toFixed(1)} s` : `${ms.toFixed(ms < 10 ? 1 : 0)} ms`;
}

/** Calls a second as a person reads them. Pure. */
export function rateText(perSecond: number): string {
  if (!Number.isFinite(perSecond) || perSecond === 0) return "0";
  return perSecond >= 100 ? perSecond.toFixed(0) : perSecond >= 1 ? perSecond.toFixed(1) : perSecond.toPrecision(2);
}

/** A count and what is counted: `1 call`, `2 calls`. Pure. */
export function countText(count: number, noun: string): string {
  return `${count} ${noun}${count === 1 ? "" : "s"}`;
}

/** A part of a whole, in percent. Pure. */
export function shareText(share: number): string {
  return `${(share * 100).toFixed(share > 0 && share < 0.1 ? 1 : 0)} %`;
}

/** A moment of the browser's own time zone as the address has it, in UTC; empty for what is none. Pure. */
export function instantFrom(local: string): string {
  const time = new Date(local);
  return Number.isNaN(time.getTime()) ? "" : time.toISOString();
}

/** The other way round, to the second. Pure. */
export function localFrom(instant: string): string {
  const time = new Date(instant);
  if (Number.isNaN(time.getTime())) return "";
  return new Date(time.getTime() - time.getTimezoneOffset() * 60_000).toISOString().slice(0, 19);
}

/** A request's member for a moment that is searched for; none for an empty one. Pure. */
export function timeMember<Name extends string>(name: Name, instant: string): Partial<Record<Name, string>> {
  return localFrom(instant) === "" ? {} : ({ [name]: instant } as Partial<Record<Name, string>>);
}
