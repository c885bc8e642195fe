import { html, nothing, type TemplateResult } from "./lit-html.js";
import type { Choice } from "./picker.js";
import { addressOf, visibleText } from "./text.js";

/** A failed call and its owner, as far as known. */
interface FailedCall {
  readonly errorType: string;
  readonly statusCode: number;
  /** The rule that refused the call; empty if none did. */
  readonly rule: string;
  readonly publicKey: string;
  readonly userId: string;
  readonly providerName: string;
}

/** Explains an error type and links to the views where it can be fixed. */
interface Remedy {
  readonly means: string;
  /** View names as in the address, with the link text. */
  readonly places?: ReadonlyArray<readonly [view: string, text: string]>;
}

const APPLICATION = ["application", "View the application's settings"] as const;
const CLIENT = ["clients", "Store or correct the OAuth client"] as const;
const CAPTURE = ["application", "Capture the application's calls to see requests and answers"] as const;
const CONNECTION = ["connection", "View the connection"] as const;
const LINK = ["link", "Make a connect link"] as const;
const PROVIDERS = ["providers", "View the providers"] as const;
const START = ["start", "See what needs attention"] as const;

const REMEDIES: Readonly<Record<string, Remedy>> = {
  CALL_FORMAT_ERROR: {
    means: "The call is malformed; the error message to the caller names the wrong field.",
    places: [CAPTURE],
  },
  INVALID_PUBLIC_KEY: {
    means: "No application has this public key, or the application is disabled.",
    places: [["applications", "View the applications"]],
  },
  CALLER_NOT_ALLOWED: {
    means: "The caller's origin or address is not allowed, or its proof is missing or wrong.",
    places: [APPLICATION],
  },
  INVALID_PROVIDER: { means: "There is no provider with this name.", places: [PROVIDERS] },
  URL_NOT_ALLOWED: { means: "The URL is not on any of the provider's origins.", places: [PROVIDERS] },
  CALL_NOT_PERMITTED: {
    means: "The rules of the application or of the call token do not allow the call.",
    places: [APPLICATION],
  },
  INVALID_OAUTHID: { means: "The user has not connected this provider.", places: [LINK] },
  REAUTHORIZATION_REQUIRED: {
    means: "The connection has ended, or its token has expired and cannot be refreshed. The user must connect again.",
    places: [CONNECTION, LINK],
  },
  PROVIDER_UNREACHABLE: {
    means:
      "The relay could not reach the provider, or lost the connection before the answer. The provider may still have performed the request.",
  },
  PROVIDER_TIMEOUT: { means: "The provider did not answer in time. It may still have performed the request." },
  PROVIDER_RESPONSE_INVALID: {
    means: "The provider's answer could not be read. The provider may still have performed the request.",
  },
  RESPONSE_TOO_LARGE: {
    means:
      "The provider's answer is over the size limit, or expands too much when decoded. The provider may still have performed the request.",
  },
  REQUEST_TOO_LARGE: { means: "The request is over the size limit; the pass-through (/via/) accepts larger ones." },
  RATE_LIMITED: {
    means: "The application or the connection has reached its limit of calls per minute.",
    places: [APPLICATION],
  },
  REFRESH_UNAVAILABLE: {
    means:
      "The token has expired and could not be refreshed at that moment, or no OAuth client is stored to refresh it.",
    places: [CONNECTION, CLIENT],
  },
  PROVIDER_MISCONFIGURED: {
    means: "The provider refuses the application's OAuth client, or none is stored.",
    places: [CLIENT],
  },
  STORE_UNAVAILABLE: { means: "The database could not be read or written.", places: [START] },
  OVERLOADED: {
    means: "The relay had no capacity for the call or its answer. The provider may still have performed the request.",
    places: [["figures", "View the figures"]],
  },
  INTERNAL_ERROR: { means: "A fault in the relay. Its log has the details under the call id." },
};

/** Choices for an error type picker: the relay's error types, and `API_ERROR` for the provider's own errors. */
export const ERROR_TYPES: ReadonlyArray<Choice> = [
  ["API_ERROR", "The provider itself answered with an error."] as const,
  ...Object.entries(REMEDIES).map(([value, { means }]) => [value, means] as const),
].map(([value, detail]) => ({ value, label: value, detail, ignoresCase: true }));

/** Why the caller was refused, by rule. */
const CALLERS: ReadonlyMap<string, string> = new Map([
  ["origin", "The browser origin is not on the application's list."],
  ["address", "The client address is not on the application's list."],
  ["private-key", "The private key was wrong."],
  ["call-token", "The call token was invalid or expired."],
  ["user-signature", "The user signature was wrong."],
  ["proof-missing", "The call carried less proof than the application requires."],
]);

/** Remedy for an error status from the provider. */
function providerRemedy(statusCode: number): Remedy {
  const answered = `The provider answered with ${statusCode}`;
  if (statusCode === 401 || statusCode === 403) {
    const means = `${answered}: it does not accept the token for this, or the token's scope or the user's own permissions are not sufficient.`;
    return { means, places: [CONNECTION, LINK, CAPTURE] };
  }
  if (statusCode === 404)
    return { means: `${answered}: the resource does not exist, or not for this user.`, places: [CAPTURE] };
  if (statusCode === 429) return { means: `${answered}: too many requests.` };
  if (statusCode >= 500) return { means: `${answered}: the fault is on its side.` };
  return { means: `${answered}: it rejected the request.`, places: [CAPTURE] };
}

/** Explains why a call failed and links to where it can be fixed; nothing for an unknown or empty error type. */
export function remedyView(call: FailedCall): TemplateResult | typeof nothing {
  const { errorType, statusCode, rule, publicKey, userId, providerName } = call;
  const known = Object.hasOwn(REMEDIES, errorType) ? REMEDIES[errorType] : undefined;
  const remedy = errorType === "API_ERROR" ? providerRemedy(statusCode) : known;
  if (remedy === undefined) return nothing;
  const means = (errorType === "CALLER_NOT_ALLOWED" && CALLERS.get(rule)) || remedy.means;
  const whose = { publicKey, userId, providerName };
  const places = (remedy.places ?? []).filter(([view]) => isComplete(view, call));
  return html`<p>${visibleText(means)}</p>
    ${places.length === 0 ? nothing : html`<ul>${places.map(([view, text]) => html`<li><a href=${addressOf(view, whose)}>${text}</a></li>`)}</ul>`}`;
}

/** Whether enough is known about the call to link to the view. */
function isComplete(view: string, { publicKey, userId }: FailedCall): boolean {
  if (view === "connection") return publicKey !== "" && userId !== "";
  return publicKey !== "" || !["application", "link", "clients"].includes(view);
}
