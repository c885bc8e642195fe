import { applicationLinks, part } from "./application-view.js";
import { type Field, lines, userField } from "./field.js";
import { createForm, secretView } from "./form.js";
import { html, nothing } from "./lit-html.js";
import type { PickerOptions } from "./picker.js";
import { qrCode } from "./qr-code.js";
import { addressOf } from "./text.js";
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
      making.clear();
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
