import { figuresOf, msText } from "./figures.js";
import { html, svg, type TemplateResult } from "./lit-html.js";
import type { LiveCall } from "./live-call.js";

/** Calls in the plot. */
const BARS = 60;
/** In units of the drawing, which is stretched to the room there is; a bar is one wide. */
const HEIGHT = 100;
const GAP = 0.2;
/** The end of a bar that is cut. */
const CUT = 2;
/** Below this a plot would only show noise. */
const MIN_TOP_MS = 10;

const PARTS = [
  { name: "Provider", className: "provider", of: (call: LiveCall) => call.providerMs },
  { name: "Waits for a token or a turn", className: "wait", of: (call: LiveCall) => call.waitMs },
  { name: "Relay", className: "relay", of: (call: LiveCall) => call.relayMs },
] as const;

/**
 * The last calls as bars, the newest at the right: each is the time of one call, in its parts. The table beside it says
 * the same in numbers.
 *
 * @param calls newest first.
 */
export function latencyPlot(calls: readonly LiveCall[]): TemplateResult {
  const shown = calls.slice(0, BARS);
  const topMs = topOf(shown);
  return html`<figure>
    <div class="plot">
      <div class="axis" aria-hidden="true">
        ${[1, 0.5, 0].map((share) => html`<span>${share === 0 ? "0" : msText(topMs * share)}</span>`)}
      </div>
      <svg viewBox="0 0 ${BARS} ${HEIGHT}" preserveAspectRatio="none" role="img" aria-label=${labelOf(shown)}>
        ${[0, 0.5, 1].map((share) => svg`<line x1="0" x2=${BARS} y1=${HEIGHT * share} y2=${HEIGHT * share} />`)}
        ${shown.map((call, at) => bar(call, BARS - 1 - at, topMs))}
      </svg>
    </div>
    <figcaption>
      <ul class="legend">
        ${PARTS.map(({ name, className }) => html`<li class=${className}>${name}</li>`)}
        <li class="cut">Longer than shown</li>
      </ul>
    </figcaption>
  </figure>`;
}

/** A few slow calls do not press all others flat: their bars are cut. */
function topOf(calls: readonly LiveCall[]): number {
  const figures = figuresOf(calls.map(({ totalMs }) => totalMs));
  return Math.max(MIN_TOP_MS, Math.min(figures?.longest ?? 0, (figures?.p95 ?? 0) * 1.5));
}

function bar(call: LiveCall, x: number, topMs: number): TemplateResult {
  let fromMs = 0;
  const piece = (className: string, y: number, height: number) =>
    svg`<rect class=${className} x=${x + GAP / 2} y=${y} width=${1 - GAP} height=${height} />`;
  const pieces = PARTS.map(({ className, of }) => {
    const start = (Math.min(topMs, fromMs) / topMs) * HEIGHT;
    fromMs += of(call);
    const end = (Math.min(topMs, fromMs) / topMs) * HEIGHT;
    return piece(className, HEIGHT - end, end - start);
  });
  return svg`<g>${pieces}${call.totalMs > topMs ? piece("cut", 0, CUT) : ""}</g>`;
}

function labelOf(calls: readonly LiveCall[]): string {
  const median = (of: (call: LiveCall) => number) => msText(figuresOf(calls.map(of))?.median ?? 0);
  if (calls.length === 0) return "No call yet.";
  const [provider, , relay] = PARTS;
  return `Time of the last ${calls.length} calls. In the median the provider took ${median(provider.of)}, the relay ${median(relay.of)}.`;
}
