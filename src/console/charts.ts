import { html, nothing, svg, type TemplateResult } from "./lit-html.js";

/** In viewBox units; the drawing is stretched to its container, and each point is one unit wide. */
const HEIGHT = 100;
const GAP = 0.2;
/** Height of the mark at the top of a cut bar. */
const CUT = 2;
/** Tolerance factor: the summed parts of a bar may slightly exceed a total that was computed elsewhere. */
const ROUNDING = 1.001;

/** Options common to both kinds of charts. Points are shown on hover; screen readers use the table beside the chart. */
interface ChartOptions {
  /** Label for screen readers. @param top the highest value of the axis, with its unit. */
  readonly label: (top: string) => string;
  /** Formats a value of the axis, with its unit. */
  readonly text: (value: number) => string;
  /** Labels at the ends of the time axis. */
  readonly ends: readonly [start: string, end: string];
}

/** One point: a bar of stacked parts. */
export interface ChartBar {
  readonly label: string;
  readonly parts: readonly number[];
}

/**
 * Stacked bars over time.
 *
 * @param classes CSS classes of the parts.
 * @param topValue highest value of the axis; longer bars are cut. Default: high enough for all bars.
 */
export function barChart({
  bars,
  classes,
  topValue,
  ...options
}: ChartOptions & {
  readonly bars: readonly ChartBar[];
  readonly classes: readonly string[];
  readonly topValue?: number;
}): TemplateResult {
  const top = topValue ?? topOf(bars.map(({ parts }) => parts.reduce((sum, part) => sum + part, 0)));
  const drawn = bars.map(({ label, parts }, at) => {
    let sum = 0;
    const piece = (name: string, y: number, height: number) =>
      svg`<rect class=${name} x=${at + GAP / 2} y=${y} width=${1 - GAP} height=${height} />`;
    const pieces = parts.map((part, index) => {
      const start = (Math.min(top, sum) / top) * HEIGHT;
      sum += part;
      const end = (Math.min(top, sum) / top) * HEIGHT;
      return piece(classes[index] ?? "", HEIGHT - end, end - start);
    });
    return svg`<g><title>${label}</title>${hoverArea(at)}${pieces}${sum > top * ROUNDING ? piece("cut", 0, CUT) : nothing}</g>`;
  });
  return chart({ ...options, top, count: bars.length, drawn });
}

/** One line over time; undefined values are gaps. */
interface ChartLine {
  readonly name: string;
  readonly values: ReadonlyArray<number | undefined>;
}

/** Lines over time. @param labels one for each point, shown on hover. */
export function lineChart({
  lines,
  labels,
  ...options
}: ChartOptions & { readonly lines: readonly ChartLine[]; readonly labels: readonly string[] }): TemplateResult {
  const top = topOf(lines.flatMap(({ values }) => values.map((value) => value ?? 0)));
  const drawn = [
    ...lines.flatMap(({ name, values }) =>
      values.map((value, at) => {
        if (value === undefined) return svg``;
        const y = HEIGHT - (value / top) * HEIGHT;
        const before = values[at - 1];
        const from = before === undefined ? y : HEIGHT - (before / top) * HEIGHT;
        const kind = before === undefined && values[at + 1] === undefined ? "value alone" : "value";
        return svg`<line class="${kind} ${name}" x1=${before === undefined ? at : at - 0.5} x2=${at + 0.5} y1=${from} y2=${y} />`;
      }),
    ),
    ...labels.map((label, at) => svg`<g><title>${label}</title>${hoverArea(at)}</g>`),
  ];
  return chart({ ...options, top, count: labels.length, drawn });
}

/** Invisible area that shows the point's title on hover. */
function hoverArea(at: number): TemplateResult {
  return svg`<rect class="hover" x=${at} y="0" width="1" height=${HEIGHT} />`;
}

function chart({
  label,
  text,
  ends: [start, end],
  top,
  count,
  drawn,
}: ChartOptions & {
  readonly top: number;
  readonly count: number;
  readonly drawn: readonly unknown[];
}): TemplateResult {
  return html`<figure>
    <div class="plot">
      <div class="axis" aria-hidden="true">
        ${[1, 0.5, 0].map((share) => html`<span>${share === 0 ? "0" : text(top * share)}</span>`)}
      </div>
      <svg viewBox="0 0 ${Math.max(1, count)} ${HEIGHT}" preserveAspectRatio="none" role="img"
        aria-label=${label(text(top))}>
        ${[0, 0.5, 1].map((share) => svg`<line x1="0" x2=${count} y1=${HEIGHT * share} y2=${HEIGHT * share} />`)} ${drawn}
      </svg>
      <div class="times" aria-hidden="true"><span>${start}</span><span>${end}</span></div>
    </div>
  </figure>`;
}

/** The smallest 1, 2 or 5 times a power of ten that is at least the highest value. Pure. */
function topOf(values: readonly number[]): number {
  const most = Math.max(0, ...values);
  if (most === 0) return 1;
  const power = 10 ** Math.floor(Math.log10(most));
  return ([1, 2, 5, 10].find((factor) => factor * power >= most) ?? 10) * power;
}
