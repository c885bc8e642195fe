import { html, nothing, svg, type TemplateResult } from "./lit-html.js";
import { encode } from "./uqr.js";

/** Width of the quiet zone in modules (ISO/IEC 18004 section 9.1). */
const QUIET = 4;

/** A QR code, black on white in every theme so that phones can read it; nothing when the text is too long. */
export function qrCode(label: string, text: string): TemplateResult | typeof nothing {
  const path = pathOf(text);
  if (path === undefined) return nothing;
  const { size, squares } = path;
  return html`<svg class="qr" role="img" aria-label=${label} viewBox="0 0 ${size} ${size}">
    ${svg`<rect width=${size} height=${size} />`}${svg`<path d=${squares} />`}
  </svg>`;
}

/** The dark modules as one SVG path; undefined when the text is too long for a QR code. Pure. */
function pathOf(text: string): { readonly size: number; readonly squares: string } | undefined {
  try {
    const { size, data } = encode(text, { ecc: "M", border: QUIET });
    const squares = data.flatMap((row, y) => row.flatMap((isDark, x) => (isDark ? `M${x} ${y}h1v1h-1z` : [])));
    return { size, squares: squares.join("") };
  } catch {
    // The link is shown as text as well.
    return undefined;
  }
}
