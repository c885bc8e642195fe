import {
  type Application as ApplicationMessage,
  CallerAuth as CallerAuthMessage,
  Application_State as State,
} from "../../gen/relay/admin/v1/application_pb.js";
import type { Application, ApplicationSettings } from "../applications/application.js";
import type { Parsed } from "../applications/parsed.js";
import { parsePublicKey } from "../applications/public-key.js";
import {
  MAX_CALLS_PER_MINUTE,
  type ParsedList,
  parseAddresses,
  parseDisplayName,
  parseOrigins,
  parseRedirectUris,
} from "./application-fields.js";
import type { CreateApplicationInput } from "./create-application.js";
import { invalidArgument } from "./invalid-argument.js";

/** What can be written, in the schema's spelling, and how each field is read. */
const READERS = {
  display_name: ({ displayName }) => ({ name: value(parseDisplayName(displayName), "display_name") }),
  caller_auth: ({ callerAuth }) => ({ callerAuth: callerAuthFrom(callerAuth) }),
  allowed_origins: ({ allowedOrigins }) => ({
    allowedOrigins: values(parseOrigins(allowedOrigins), "allowed_origins"),
  }),
  allowed_addresses: ({ allowedAddresses }) => ({
    allowedAddresses: values(parseAddresses(allowedAddresses), "allowed_addresses"),
  }),
  allowed_redirect_uris: ({ allowedRedirectUris }) => ({
    allowedRedirectUris: values(parseRedirectUris(allowedRedirectUris), "allowed_redirect_uris"),
  }),
  calls_per_minute: ({ callsPerMinute }) => ({ callsPerMinute: calls(callsPerMinute, "calls_per_minute") }),
  connection_calls_per_minute: ({ connectionCallsPerMinute }) => ({
    connectionCallsPerMinute: calls(connectionCallsPerMinute, "connection_calls_per_minute"),
  }),
  state: ({ state }) => ({ state: stateFrom(state) }),
} as const satisfies Record<string, (message: ApplicationMessage) => Partial<ApplicationSettings>>;

/** Fields of an application that an operator can write. */
export const APPLICATION_FIELDS = Object.keys(READERS) as ReadonlyArray<keyof typeof READERS>;

/** Reads fields of a message. Throws INVALID_ARGUMENT that names the field. */
export function patchFrom(
  message: ApplicationMessage,
  fields: typeof APPLICATION_FIELDS,
): Partial<ApplicationSettings> {
  return Object.assign({}, ...fields.map((field) => READERS[field](message))) as Partial<ApplicationSettings>;
}

/** Reads a new application. Throws INVALID_ARGUMENT that names the field. */
export function newApplicationFrom(message: ApplicationMessage): CreateApplicationInput {
  const publicKey = message.publicKey === "" ? undefined : value(parsePublicKey(message.publicKey), "public_key");
  return { ...(patchFrom(message, APPLICATION_FIELDS) as ApplicationSettings), publicKey };
}

function value(parsed: Parsed, field: string): string {
  if ("value" in parsed) return parsed.value;
  throw invalidArgument(`application.${field}`, parsed.problem);
}

function values(parsed: ParsedList, field: string): readonly string[] {
  if ("values" in parsed) return parsed.values;
  const which = parsed.entry === undefined ? "" : `has ${JSON.stringify(parsed.entry)}, which `;
  throw invalidArgument(`application.${field}`, which + parsed.problem);
}

function calls(count: number, field: string): number {
  if (count >= 0 && count <= MAX_CALLS_PER_MINUTE) return count;
  throw invalidArgument(`application.${field}`, `must be from 0 (no limit) to ${MAX_CALLS_PER_MINUTE}`);
}

function callerAuthFrom(callerAuth: CallerAuthMessage): Application["callerAuth"] {
  if (callerAuth === CallerAuthMessage.UNSPECIFIED) return "PUBLIC_KEY";
  return known(CallerAuthMessage[callerAuth], "caller_auth") as Application["callerAuth"];
}

function stateFrom(state: State): Application["state"] {
  return state === State.UNSPECIFIED ? "ACTIVE" : (known(State[state], "state") as Application["state"]);
}

/** proto3 takes any number for an enum. */
function known(name: string | undefined, field: string): string {
  if (name === undefined) throw invalidArgument(`application.${field}`, "has a value that this version does not know");
  return name;
}
