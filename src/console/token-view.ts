import type { ApplicationJson } from "../../gen/relay/admin/v1/application_pb.js";
import { applicationAddress, applicationLinks, part } from "./application-view.js";
import { createForm, type Field, lines, numberFrom, secretView } from "./form.js";
import { html, nothing, type TemplateResult } from "./lit-html.js";
import { createLoader } from "./loading.js";
import { type KnownNames, loadKnownNames, suggestionLists } from "./try-view.js";
import { moment, problemNotice, type View, type ViewContext } from "./view.js";

/** Makes call tokens: what stands for one user of an application, for a time, within rules. */
export function createTokenView(context: ViewContext): View {
  const { api, update } = context;
  const found = createLoader<ApplicationJson>(update);
  const names = createLoader<KnownNames>(update);
  let publicKey = "";

  const making = createForm(context, {
    ...{ id: "token", method: "ApplicationService/CreateCallToken", button: "Make the call token" },
    fields: () => FIELDS,
    requestFrom: (values) => {
      const rule = {
        methods: lines.read(values["methods"]).map((method) => method.toUpperCase()),
        hosts: lines.read(values["hosts"]),
        paths: lines.read(values["paths"]),
      };
      return {
        publicKey,
        userId: values["userId"] ?? "",
        providerNames: lines.read(values["providerNames"]),
        rules: Object.values(rule).every(({ length }) => length === 0) ? [] : [rule],
        lifetimeSeconds: numberFrom(values["lifetimeSeconds"], "lifetime_seconds"),
      };
    },
    done: ({ callToken = "", expireTime }) =>
      secretView(
        "call-token",
        "Call token",
        callToken,
        html`It belongs with the one client that calls for this user, which sends it as
          <code>Authorization: Bearer</code>. It ends ${moment(expireTime, "")}; only a new private key of the
          application ends it sooner.`,
      ),
  });

  function forget(): void {
    making.clear();
    found.clear();
  }

  return {
    title: "Call tokens",
    enter(parameters) {
      forget();
      publicKey = parameters.get("publicKey") ?? "";
      making.fill({ userId: parameters.get("userId") ?? "", lifetimeSeconds: "900" });
      void found.load(() => api.call("ApplicationService/GetApplication", { publicKey }));
      void names.load(() => loadKnownNames(api));
    },
    leave: forget,
    render: () => html`<h1 tabindex="-1">Call tokens</h1>
      ${applicationLinks(publicKey, "token")} ${problemNotice(found)}
      ${part("Make a call token", "It stands for one user, for a time, within rules. The relay keeps no list of them.", making)}
      ${found.value?.callerAuth === "CALLER_AUTH_PUBLIC_KEY" ? openDoor(publicKey) : nothing}
      ${suggestionLists(names.value)}`,
  };
}

const ANY = "One a line. None: any.";

const FIELDS: readonly Field[] = [
  { name: "userId", label: "User id", path: "user_id" },
  {
    ...{ name: "lifetimeSeconds", label: "Lifetime in seconds", kind: "number", path: "lifetime_seconds" },
    hint: "0: 15 minutes.",
  },
  { name: "providerNames", label: "Providers", kind: "lines", path: "provider_names", hint: ANY },
  { name: "methods", label: "HTTP methods", kind: "lines", path: "rules", hint: ANY },
  { name: "hosts", label: "Hosts", kind: "lines", path: "rules.hosts", hint: ANY },
  {
    ...{ name: "paths", label: "Paths", kind: "lines", path: "rules.paths" },
    hint: "One a line, such as /repos/acme/**: * is one segment, ** any number of them. None: any.",
  },
];

function openDoor(publicKey: string): TemplateResult {
  return html`<p class="notice bad">
    This application asks for its public key alone: whoever reads a call token can call without it, and without its
    rules. <a href=${applicationAddress("application", publicKey)}>Ask for the private key or a signature instead</a>.
  </p>`;
}
