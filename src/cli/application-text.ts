import type { Application, CallerAuth } from "../applications/application.js";
import { failure } from "./exit-error.js";
import { textFields } from "./text-table.js";

/** The three proofs as the command line spells them. */
export const CALLER_AUTH: ReadonlyMap<string, CallerAuth> = new Map([
  ["public-key", "PUBLIC_KEY"],
  ["signed-user", "SIGNED_USER"],
  ["private-key", "PRIVATE_KEY"],
]);

/** An application for programs: an allow-list of members, so that no key hash is ever among them. */
export function jsonFromApplication(application: Application) {
  const {
    publicKey,
    name,
    callerAuth,
    allowedOrigins,
    allowedAddresses,
    allowedRedirectUris,
    state,
    captureUntil,
    createdAt,
    updatedAt,
  } = application;
  const { callsPerMinute, connectionCallsPerMinute } = application;
  return {
    publicKey,
    name,
    callerAuth,
    allowedOrigins,
    allowedAddresses,
    allowedRedirectUris,
    callsPerMinute,
    connectionCallsPerMinute,
    state,
    captureUntil: captureUntil > Date.now() ? new Date(captureUntil).toISOString() : null,
    createdAt: new Date(createdAt).toISOString(),
    updatedAt: new Date(updatedAt).toISOString(),
  };
}

/** An application for a person. */
export function textFromApplication(application: Application): string {
  const { publicKey, name, callerAuth, allowedOrigins, allowedAddresses, state, captureUntil } =
    jsonFromApplication(application);
  return textFields([
    ["name", name],
    ["public key", publicKey],
    ["state", state],
    ["caller auth", callerAuth],
    ["browser origins", allowedOrigins.join(", ") || "none: no browser access"],
    ["client addresses", allowedAddresses.join(", ") || "any"],
    ["redirects to", application.allowedRedirectUris.join(", ") || "nowhere"],
    ["calls a minute", callsText(application.callsPerMinute)],
    ["  per connection", callsText(application.connectionCallsPerMinute)],
    ["calls captured", captureUntil === null ? "no" : `until ${captureUntil}`],
    ["created", new Date(application.createdAt).toISOString()],
    ["updated", new Date(application.updatedAt).toISOString()],
  ]);
}

function callsText(callsPerMinute: number): string {
  return callsPerMinute === 0 ? "no limit" : String(callsPerMinute);
}

/** What a command says when the public key names nothing. */
export function noApplication(): Error {
  return failure("There is no application with this public key. 'relay app list' shows those there are.");
}
