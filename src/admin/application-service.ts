import { create } from "@bufbuild/protobuf";
import { timestampFromMs } from "@bufbuild/protobuf/wkt";
import type { ServiceImpl } from "@connectrpc/connect";
import {
  type Application as ApplicationMessage,
  ApplicationSchema,
  type ApplicationService,
  CallerAuth as CallerAuthMessage,
  Application_State as State,
} from "../../gen/relay/admin/v1/application_pb.js";
import {
  type Application,
  type ApplicationSettings,
  type Parsed,
  parsePublicKey,
} from "../applications/application.js";
import {
  type CreateApplicationInput,
  createApplication,
  deleteApplication,
  MAX_CALLS_PER_MINUTE,
  type ParsedList,
  parseAddresses,
  parseDisplayName,
  parseOrigins,
  parseRedirectUris,
  rotateApplicationKey,
  updateApplication,
} from "./applications.js";
import {
  type AdminOptions,
  administrationFor,
  etagFrom,
  invalidArgument,
  isCurrentFrom,
  maskedFields,
  NAME_PART,
  namedApplication,
  noApplication,
  pageFrom,
  pageOfRest,
  requiredId,
  requiredMessage,
} from "./standard-methods.js";

/** relay.admin.v1.ApplicationService: message → use case → message. */
export function createApplicationService(options: AdminOptions): ServiceImpl<typeof ApplicationService> {
  const { applications } = options.store;
  return {
    async getApplication({ publicKey }) {
      return messageFromApplication(await namedApplication(applications, publicKey));
    },
    async listApplications(request) {
      const prefix = request.publicKeyPrefix;
      const page = pageFrom(request, [prefix], [NAME_PART]);
      const rest = await applications.page({ prefix, after: page.after?.[0], limit: page.size + 1 });
      const { rows, nextPageToken } = pageOfRest(page, rest, ({ publicKey }) => [publicKey]);
      return { applications: rows.map(messageFromApplication), nextPageToken };
    },
    async createApplication(request, context) {
      const input = newApplicationFrom(requiredMessage(request.application, "application"));
      const { application, privateKey } = await createApplication(administrationFor(options, context), input);
      return { application: messageFromApplication(application), privateKey };
    },
    async updateApplication(request, context) {
      const message = requiredMessage(request.application, "application");
      const publicKey = requiredId(message.publicKey, "application.public_key");
      const fields = maskedFields(ApplicationSchema, message, request.updateMask, APPLICATION_FIELDS);
      const isCurrent = isCurrentFrom(message.etag, applicationEtag);
      const administration = administrationFor(options, context);
      const updated = await updateApplication(administration, publicKey, patchFrom(message, fields), isCurrent);
      if (updated === undefined) throw noApplication();
      return messageFromApplication(updated);
    },
    async deleteApplication({ publicKey, etag }, context) {
      const isCurrent = isCurrentFrom(etag, applicationEtag);
      const administration = administrationFor(options, context);
      const isDeleted = await deleteApplication(administration, requiredId(publicKey, "public_key"), isCurrent);
      if (!isDeleted) throw noApplication();
      return {};
    },
    async rotateApplicationKey({ publicKey }, context) {
      const administration = administrationFor(options, context);
      const privateKey = await rotateApplicationKey(administration, requiredId(publicKey, "public_key"));
      if (privateKey === undefined) throw noApplication();
      return { privateKey };
    },
  };
}

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
const APPLICATION_FIELDS = Object.keys(READERS) as ReadonlyArray<keyof typeof READERS>;

/** Reads fields of a message. Throws INVALID_ARGUMENT that names the field. */
function patchFrom(message: ApplicationMessage, fields: typeof APPLICATION_FIELDS): Partial<ApplicationSettings> {
  return Object.assign({}, ...fields.map((field) => READERS[field](message))) as Partial<ApplicationSettings>;
}

/** Reads a new application. Throws INVALID_ARGUMENT that names the field. */
function newApplicationFrom(message: ApplicationMessage): CreateApplicationInput {
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

/** An application as operators see it: an allow-list of members, so that no key hash is ever among them. */
export function messageFromApplication(application: Application): ApplicationMessage {
  return create(ApplicationSchema, {
    publicKey: application.publicKey,
    displayName: application.name,
    callerAuth: CallerAuthMessage[application.callerAuth],
    allowedOrigins: [...application.allowedOrigins],
    allowedAddresses: [...application.allowedAddresses],
    allowedRedirectUris: [...application.allowedRedirectUris],
    callsPerMinute: application.callsPerMinute,
    connectionCallsPerMinute: application.connectionCallsPerMinute,
    state: State[application.state],
    ...(application.captureUntil === 0 ? {} : { captureEndTime: timestampFromMs(application.captureUntil) }),
    createTime: timestampFromMs(application.createdAt),
    updateTime: timestampFromMs(application.updatedAt),
    etag: applicationEtag(application),
  });
}

/** Of everything that an operator can change, and of when that was done last: a new key counts, too. */
function applicationEtag(application: Application): string {
  const { id, name, callerAuth, allowedOrigins, allowedAddresses, allowedRedirectUris, state, updatedAt } = application;
  const { callsPerMinute, connectionCallsPerMinute } = application;
  const lists = [allowedOrigins, allowedAddresses, allowedRedirectUris];
  return etagFrom([id, name, callerAuth, lists, callsPerMinute, connectionCallsPerMinute, state, updatedAt]);
}
