import { html, type TemplateResult } from "./lit-html.js";

const UNITS: ReadonlyArray<readonly [unit: Intl.RelativeTimeFormatUnit, seconds: number]> = [
  ["day", 86_400],
  ["hour", 3600],
  ["minute", 60],
  ["second", 1],
];
const RELATIVE = new Intl.RelativeTimeFormat("en", { numeric: "always" });

/** How far a moment is from now, in its largest unit: `in 3 hours`, `5 minutes ago`. Pure. */
export function distanceText(timeMs: number, nowMs: number): string {
  const seconds = Math.round((timeMs - nowMs) / 1000);
  const [unit, length] = UNITS.find(([, size]) => Math.abs(seconds) >= size) ?? ["second", 1];
  return RELATIVE.format(Math.trunc(seconds / length), unit);
}

/** A moment as a person reads it, with the exact one behind it. @param timestamp RFC 3339, as ProtoJSON has it. */
export function moment(timestamp: string | undefined, otherwise: string): TemplateResult {
  if (timestamp === undefined) return html`${otherwise}`;
  const text = distanceText(Date.parse(timestamp), Date.now());
  return html`<time datetime=${timestamp} title=${timestamp}>${text}</time>`;
}

/** A time of day, in the browser's own time zone. */
export function clockTime(timestamp: string): TemplateResult {
  return html`<time datetime=${timestamp} title=${timestamp}>${new Date(timestamp).toLocaleTimeString("en-GB")}</time>`;
}
