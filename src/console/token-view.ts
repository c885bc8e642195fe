import type { ApplicationJson } from "../../gen/relay/admin/v1/application_pb.js";
import type { CallTokenTermsJson } from "../../gen/relay/admin/v1/call_pb.js";
import { applicationLinks, part } from "./application-view.js";
import { explanationView } from "./explanation-view.js";
import type { Field, Values } from "./field.js";
import { createForm, type Form, secretView } from "./form.js";
import { html, nothing, type TemplateResult } from "./lit-html.js";
import { createLoader } from "./loading.js";
import type { PickerOptions } from "./picker.js";
import { addressOf, lines, numberFrom } from "./text.js";
import { moment, problemNotice, type View, type ViewContext } from "./view.js";

/** Creates call tokens: each acts for one user of an application, for a limited time, within rules. */
export function createTokenView(context: ViewContext): View {
  const { api, directory, update } = context;
  const found = createLoader<ApplicationJson>(update);
  let publicKey = "";

  const making = createForm(context, {
    ...{ id: "token", method: "ApplicationService/CreateCallToken", button: "Make the call token" },
    fields: () => fieldsFor((text) => directory.findUsers(publicKey, text)),
    requestFrom: (values) => ({
      publicKey,
      userId: values["userId"] ?? "",
      ...termsFrom(values),
      lifetimeSeconds: numberFrom(values["lifetimeSeconds"], "lifetime_seconds"),
    }),
    done: ({ callToken = "", expireTime }) =>
      secretView(
        "call-token",
        "Call token",
        callToken,
        html`Give it only to the client that calls for this user, which sends it as
          <code>Authorization: Bearer</code>. It expires ${moment(expireTime, "")}; only a new private key of the
          application invalidates it sooner.`,
      ),
  });

  /** Runs the same checks as a real call. */
  const preview: Form = createForm(context, {
    ...{ id: "preview", method: "CallService/ExplainCall", button: "See what it would allow" },
    fields: () => previewFields(directory.findProviders),
    requestFrom: ({ providerName = "", method = "", url = "" }) => ({
      call: { publicKey, userId: making.values["userId"] ?? "", providerName, call: { method, url } },
      callTokenTerms: termsFrom(making.values),
    }),
    done: (explanation, { call }) => explanationView(explanation, false, call?.userId ?? ""),
  });

  return {
    title: "Call tokens",
    enter(parameters) {
      publicKey = parameters.get("publicKey") ?? "";
      making.fill({ userId: parameters.get("userId") ?? "", lifetimeSeconds: "900" });
      preview.fill({ method: "GET" });
      void found.load(() => api.call("ApplicationService/GetApplication", { publicKey }));
    },
    leave() {
      for (const each of [making, preview, found]) each.clear();
    },
    render: () => html`<h1 tabindex="-1">Call tokens</h1>
      ${applicationLinks(context, publicKey, "token")} ${problemNotice(found)}
      ${part("Make a call token", "A call token allows calls for one user, for a limited time, within rules. The relay keeps no list of call tokens.", making)}
      ${part("Try its terms", "Shows how a call with such a token would be answered. Nothing is sent, and no token is created.", preview)}
      ${found.value?.callerAuth === "CALLER_AUTH_PUBLIC_KEY" ? openDoor(publicKey) : nothing}`,
  };
}

function termsFrom(values: Values): CallTokenTermsJson {
  const rule = {
    methods: lines.read(values["methods"]).map((method) => method.toUpperCase()),
    hosts: lines.read(values["hosts"]),
    paths: lines.read(values["paths"]),
  };
  const isAny = Object.values(rule).every(({ length }) => length === 0);
  return { providerNames: lines.read(values["providerNames"]), rules: isAny ? [] : [rule] };
}

const previewFields = (find: PickerOptions["find"]): readonly Field[] => [
  { name: "providerName", label: "Provider of the call", find },
  { name: "method", label: "Method" },
  { name: "url", label: "URL", isWide: true },
];

const ANY = "One per line. Empty: any.";

const fieldsFor = (find: PickerOptions["find"]): readonly Field[] => [
  { name: "userId", label: "User id", find },
  { name: "lifetimeSeconds", label: "Lifetime in seconds", kind: "number", hint: "0: 15 minutes." },
  { name: "providerNames", label: "Providers", kind: "lines", hint: ANY },
  { name: "methods", label: "HTTP methods", kind: "lines", path: "rules", hint: ANY },
  { name: "hosts", label: "Hosts", kind: "lines", path: "rules.hosts", hint: ANY },
  {
    ...{ name: "paths", label: "Paths", kind: "lines", path: "rules.paths" },
    hint: "One per line, such as /repos/acme/**: * is one segment, ** any number of them. Empty: any.",
  },
];

function openDoor(publicKey: string): TemplateResult {
  return html`<p class="notice bad">
    This application requires only its public key: anyone who sees a call token can also call without it, and so without
    its rules. <a href=${addressOf("application", { publicKey })}>Require the private key or a signature instead</a>.
  </p>`;
}
