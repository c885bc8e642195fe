import type { ApplicationJson, CallerAuthJson } from "../../gen/relay/admin/v1/application_pb.js";
import { rulesFromText, textFromRules } from "./commands.js";
import { fieldsWithin, type Values } from "./field.js";
import { secretView } from "./form.js";
import { html, type TemplateResult } from "./lit-html.js";
import { lines, numberFrom } from "./text.js";

/** The minimum proof that a call must carry, with its label. */
export const PROOFS: ReadonlyArray<readonly [CallerAuthJson, string]> = [
  ["CALLER_AUTH_PUBLIC_KEY", "Public key and user id"],
  ["CALLER_AUTH_SIGNED_USER", "A user signature"],
  ["CALLER_AUTH_PRIVATE_KEY", "The private key"],
];

const PROOF_HINT = html`A signature, which your server computes from the user id, is safe in a browser; the private key is for
  servers only. With neither, anyone who knows the public key and a user id can act as that user. Stronger proof is
  always accepted.`;

/** The settings of an application. */
export const APPLICATION_FIELDS = fieldsWithin("application", [
  { name: "displayName", label: "Name" },
  { name: "callerAuth", label: "A call must carry", kind: "choice", choices: PROOFS, hint: PROOF_HINT },
  {
    ...{ name: "allowedOrigins", label: "Browser origins that may call", kind: "lines" },
    hint: "One per line, such as https://app.example.com. Empty: no browser may call.",
  },
  {
    ...{ name: "allowedAddresses", label: "Client addresses that may call", kind: "lines" },
    hint: "One per line, as CIDR such as 192.0.2.0/24. Empty: any may call.",
  },
  {
    ...{ name: "allowedRedirectUris", label: "Addresses to return to after connecting", kind: "lines" },
    hint: "One per line, such as https://app.example.com/connected: where a connect link may send the user afterwards. Empty: nowhere.",
  },
  {
    ...{ name: "callsPerMinute", label: "Calls per minute, for all users together", kind: "number" },
    hint: "0: no limit.",
  },
  {
    ...{ name: "connectionCallsPerMinute", label: "Calls per minute for each connection", kind: "number" },
    hint: "0: no limit.",
  },
  {
    ...{ name: "maxCallTokenSeconds", label: "Longest lifetime of a call token, in seconds", kind: "number" },
    hint: "0: one day, the maximum.",
  },
  {
    ...{ name: "accentColor", label: "Colour of its mark on the connect page" },
    hint: "Such as #1a73e8. Empty: the relay's default.",
  },
  {
    ...{ name: "icon", label: "Icon on the connect page", kind: "picture", isWide: true },
    hint: "PNG, JPEG or WebP, at most 16 KiB and 1024 by 1024 pixels. None: the first letter of its name.",
  },
  {
    ...{ name: "callRules", label: "Rules that all its calls must match, by provider", kind: "lines" },
    hint: html`JSON, such as <code>{"github": [{"methods": ["GET"], "paths": ["/repos/acme/**"]}]}</code>. Empty: any call is allowed.`,
  },
]);

/** Default values for a new application. */
export const NEW_APPLICATION: Values = { callerAuth: "CALLER_AUTH_SIGNED_USER" };

/** Form values of an application, and its etag. Pure. */
export function valuesFromApplication(application: ApplicationJson): Values {
  const { displayName = "", callerAuth = "", callRules = [], accentColor = "", icon = "", etag = "" } = application;
  return {
    ...{ displayName, callerAuth, accentColor, icon, callRules: textFromRules(callRules), etag },
    allowedOrigins: lines.write(application.allowedOrigins),
    allowedAddresses: lines.write(application.allowedAddresses),
    allowedRedirectUris: lines.write(application.allowedRedirectUris),
    callsPerMinute: String(application.callsPerMinute ?? 0),
    connectionCallsPerMinute: String(application.connectionCallsPerMinute ?? 0),
    maxCallTokenSeconds: String(application.maxCallTokenSeconds ?? 0),
  };
}

/** Parses the form. What the relay validates itself is not checked here. Throws ApiError. Pure. */
export function applicationFromValues(values: Values): ApplicationJson {
  return {
    displayName: values["displayName"] ?? "",
    callerAuth: (values["callerAuth"] ?? "") as CallerAuthJson,
    allowedOrigins: lines.read(values["allowedOrigins"]),
    allowedAddresses: lines.read(values["allowedAddresses"]),
    allowedRedirectUris: lines.read(values["allowedRedirectUris"]),
    callsPerMinute: numberFrom(values["callsPerMinute"], "application.calls_per_minute"),
    connectionCallsPerMinute: numberFrom(values["connectionCallsPerMinute"], "application.connection_calls_per_minute"),
    maxCallTokenSeconds: numberFrom(values["maxCallTokenSeconds"], "application.max_call_token_seconds"),
    ...{ accentColor: values["accentColor"] ?? "", icon: values["icon"] ?? "" },
    callRules: rulesFromText(values["callRules"] ?? ""),
  };
}

/** Shows a new private key; the relay cannot show it again. */
export function privateKeyView(id: string, privateKey: string): TemplateResult {
  return secretView(
    id,
    "Private key",
    privateKey,
    html`It belongs on your application's server, in its secret store or an environment variable. Never put it in a
      browser, in an app that users install or in a repository. The relay stores only its hash.`,
  );
}
