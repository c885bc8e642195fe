import { applicationLinks, part } from "./application-view.js";
import { type Field, userField } from "./field.js";
import { createForm, secretView } from "./form.js";
import { html, nothing, svg, type TemplateResult } from "./lit-html.js";
import type { PickerOptions } from "./picker.js";
import { addressOf, lines } from "./text.js";
import { encode } from "./uqr.js";
import { moment, type View, type ViewContext } from "./view.js";

/** Creates one-time links with which a user connects accounts. */
export function createLinkView(context: ViewContext): View {
  const { directory } = context;
  let publicKey = "";

  const making = createForm(context, {
    ...{ id: "link", method: "ConnectionService/CreateConnectLink", button: "Make the connect link" },
    fields: () => fieldsFor((text) => directory.findUsers(publicKey, text)),
    requestFrom: ({ userId = "", providerNames, redirectUri = "", scope = "" }) => ({
      ...{ publicKey, userId, redirectUri, scope },
      providerNames: lines.read(providerNames),
    }),
    done: ({ connectUri = "", expireTime }, { userId = "" }) =>
      html`${secretView(
        "connect-link",
        "Connect link",
        connectUri,
        html`Give it to this user and nobody else: whoever opens it first connects their own account for the user. It can be
          opened once, in one browser, and expires ${moment(expireTime, "")}.`,
      )}
      ${qrCode("QR code of the connect link", connectUri)}
      <p>
        ${/^https?:/.test(connectUri) ? html`To try it yourself, <a href=${connectUri} target="_blank" rel="noreferrer">open it here</a>: this connects your own account.` : nothing}
        Afterwards: <a href=${addressOf("connections", { publicKey, userIdPrefix: userId })}>what this user has connected</a>.
      </p>`,
  });

  return {
    title: "Connect link",
    enter(parameters) {
      publicKey = parameters.get("publicKey") ?? "";
      making.fill({ userId: parameters.get("userId") ?? "", providerNames: parameters.get("providerName") ?? "" });
    },
    leave: making.clear,
    render: () => html`<h1 tabindex="-1">Connect link</h1>
      ${applicationLinks(context, publicKey, "link")}
      ${part("Make a connect link", "The user opens it in a browser and connects an account; no application has to send them there.", making)}`,
  };
}

const fieldsFor = (find: PickerOptions["find"]): readonly Field[] => [
  userField(find),
  {
    ...{ name: "redirectUri", label: "Address to return to" },
    hint: "One of the addresses in the application's settings. Empty: a page shows the result.",
  },
  {
    ...{ name: "providerNames", label: "Providers", kind: "lines" },
    hint: "Their names, such as github, one per line. Empty: all providers that the application has a client for.",
  },
  { name: "scope", label: "Scope to ask for", hint: "Empty: what the OAuth client asks for." },
];

/** Width of the quiet zone in modules (ISO/IEC 18004 section 9.1). */
const QUIET = 4;

/** A QR code, black on white in every theme so that phones can read it; nothing when the text is too long. */
function qrCode(label: string, text: string): TemplateResult | typeof nothing {
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
