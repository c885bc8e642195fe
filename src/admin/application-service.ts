import { create, type MessageInitShape } from "@bufbuild/protobuf";
import { type FieldMask, timestampFromMs } from "@bufbuild/protobuf/wkt";
import { Code, ConnectError, type ServiceImpl } from "@connectrpc/connect";
import {
  type Application as ApplicationMessage,
  ApplicationSchema,
  type ApplicationService,
  CallerAuth as CallerAuthMessage,
  type CallRule as CallRuleMessage,
  type CallRuleSchema,
  type ListApplicationsRequest,
  type ProviderCallRules,
  Application_State as State,
} from "../../gen/relay/admin/v1/application_pb.js";
import {
  type Application,
  type ApplicationSettings,
  type Parsed,
  parseCidr,
  parseOrigin,
  parsePublicKey,
  parseRedirectUri,
} from "../applications/application.js";
import {
  type CallRule,
  type CallRulesByProvider,
  jsonFromCallRules,
  parseCallRules,
  type WrittenRule,
  writtenFromRule,
} from "../applications/call-rules.js";
import { type CallToken, MAX_CALL_TOKEN_SECONDS } from "../applications/call-token.js";
import { parseIcon } from "../applications/icon.js";
import type { ProviderCatalog } from "../providers/provider.js";
import {
  type CreateApplicationInput,
  createApplication,
  DEFAULT_CALL_TOKEN_SECONDS,
  deleteApplication,
  issueCallToken,
  MAX_CALLS_PER_MINUTE,
  parseAccentColor,
  parseDisplayName,
  parseList,
  parseRulesOfProviders,
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
  namedProvider,
  noApplication,
  pageFrom,
  pageOfScan,
  required,
  requiredId,
} from "./standard-methods.js";

/** relay.admin.v1.ApplicationService: message → use case → message. */
export function createApplicationService(options: AdminOptions): ServiceImpl<typeof ApplicationService> {
  const { applications } = options.store;
  return {
    async getApplication({ publicKey }) {
      const application = await namedApplication(applications, publicKey);
      return wholeMessageFrom(application, await applications.iconOf(application.id));
    },
    async listApplications(request) {
      const { rows, nextPageToken } = await listApplications(options, request);
      return { applications: rows.map(messageFromApplication), nextPageToken };
    },
    async createApplication(request, context) {
      const input = newApplicationFrom(required(request.application, "application"), options.catalog);
      const { application, privateKey } = await createApplication(administrationFor(options, context), input);
      // Nothing may fail after the write: the key is shown only once.
      return { application: wholeMessageFrom(application, input.icon), privateKey };
    },
    async updateApplication(request, context) {
      const message = required(request.application, "application");
      const publicKey = requiredId(message.publicKey, "application.public_key");
      const patch = patchFrom(message, updatedFields(message, request.updateMask), options.catalog);
      const icon = patch.icon ?? (await applications.iconOf((await namedApplication(applications, publicKey)).id));
      const isCurrent = isCurrentFrom(message.etag, applicationEtag);
      const administration = administrationFor(options, context);
      const updated = await updateApplication(administration, publicKey, patch, isCurrent);
      if (updated === undefined) throw noApplication();
      return wholeMessageFrom(updated, icon);
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
    async createCallToken({ publicKey, userId, providerNames, rules, lifetimeSeconds }, context) {
      const { state } = await namedApplication(applications, publicKey);
      // The token would become valid as soon as the application is enabled again.
      if (state !== "ACTIVE")
        throw new ConnectError("This application is disabled: no call token can be created.", Code.FailedPrecondition);
      const issued = await issueCallToken(administrationFor(options, context), {
        publicKey,
        userId: requiredId(userId, "user_id"),
        ...termsFrom({ providerNames, rules }, options.catalog),
        lifetimeSeconds: lifetimeSeconds || DEFAULT_CALL_TOKEN_SECONDS,
      });
      if (issued === undefined) throw noApplication();
      if ("problem" in issued) throw invalidArgument(issued.field, issued.problem);
      return { callToken: issued.callToken, expireTime: timestampFromMs(issued.expiresAt) };
    },
  };
}

/** Applications scanned for one page: a search is for names, which have no index. */
const MAX_SCANNED_ROWS = 10_000;

function listApplications({ store: { applications } }: AdminOptions, request: ListApplicationsRequest) {
  const { publicKeyPrefix: prefix } = request;
  const query = request.query.toLowerCase();
  const isNamed = ({ name, publicKey }: Application) =>
    name.toLowerCase().includes(query) || publicKey.toLowerCase().includes(query);
  return pageOfScan(pageFrom(request, [prefix, query], [NAME_PART]), {
    read: (after, limit) => applications.page({ prefix, after: after?.[0], limit }),
    isWanted: query === "" ? undefined : isNamed,
    keyOf: ({ publicKey }) => [publicKey],
    maxRows: MAX_SCANNED_ROWS,
  });
}

/** Reads what a call token shall allow. @param where prefix of the field paths in an error. */
export function termsFrom(
  { providerNames, rules }: { readonly providerNames: readonly string[]; readonly rules: readonly CallRuleMessage[] },
  catalog: ProviderCatalog,
  where = "",
): Pick<CallToken, "providers" | "rules"> {
  const names = providerNames.map((name) => namedProvider(catalog, name, `${where}provider_names`).name);
  return {
    providers: names.length === 0 ? undefined : names,
    rules: rules.length === 0 ? undefined : rulesFrom(rules, `${where}rules`),
  };
}

function rulesFrom(messages: readonly CallRuleMessage[], field: string): readonly CallRule[] {
  const parsed = parseCallRules(messages.map(writtenFrom));
  if ("rules" in parsed) return parsed.rules;
  throw invalidArgument(field, parsed.problem);
}

/** Leaves out empty lists, since proto3 cannot tell them from missing ones. */
function writtenFrom({ methods, hosts, paths }: CallRuleMessage): WrittenRule {
  return {
    ...(methods.length > 0 && { methods }),
    ...(hosts.length > 0 && { hosts }),
    ...(paths.length > 0 && { paths }),
  };
}

function messageFromRule(rule: CallRule): MessageInitShape<typeof CallRuleSchema> {
  const { methods = [], hosts = [], paths = [] } = writtenFromRule(rule);
  return { methods: [...methods], hosts: [...hosts], paths: [...paths] };
}

function callRulesFrom(messages: readonly ProviderCallRules[], catalog: ProviderCatalog): CallRulesByProvider {
  const entries = messages.map(({ providerName, rules }) => [providerName, rules.map(writtenFrom)] as const);
  return value(parseRulesOfProviders(entries, catalog), "call_rules");
}

/** A parser for each field that can be written, by its name in the schema. */
const READERS = {
  display_name: ({ displayName }) => ({ name: value(parseDisplayName(displayName), "display_name") }),
  caller_auth: ({ callerAuth }) => ({ callerAuth: callerAuthFrom(callerAuth) }),
  allowed_origins: ({ allowedOrigins }) => ({
    allowedOrigins: value(parseList(allowedOrigins, parseOrigin), "allowed_origins"),
  }),
  allowed_addresses: ({ allowedAddresses }) => ({
    allowedAddresses: value(parseList(allowedAddresses, parseCidr), "allowed_addresses"),
  }),
  allowed_redirect_uris: ({ allowedRedirectUris }) => ({
    allowedRedirectUris: value(parseList(allowedRedirectUris, parseRedirectUri), "allowed_redirect_uris"),
  }),
  calls_per_minute: ({ callsPerMinute }) => ({ callsPerMinute: calls(callsPerMinute, "calls_per_minute") }),
  connection_calls_per_minute: ({ connectionCallsPerMinute }) => ({
    connectionCallsPerMinute: calls(connectionCallsPerMinute, "connection_calls_per_minute"),
  }),
  state: ({ state }) => ({ state: stateFrom(state) }),
  call_rules: ({ callRules }, catalog) => ({ callRules: callRulesFrom(callRules, catalog) }),
  max_call_token_seconds: ({ maxCallTokenSeconds: seconds }) => ({ maxCallTokenSeconds: lifetime(seconds) }),
  accent_color: ({ accentColor }) => ({ accentColor: value(parseAccentColor(accentColor), "accent_color") }),
  icon: ({ icon }) => ({ icon: value(parseIcon(icon), "icon") }),
} as const satisfies Record<
  string,
  (message: ApplicationMessage, catalog: ProviderCatalog) => Partial<ApplicationSettings>
>;

/** Fields of an application that an operator can write. */
const APPLICATION_FIELDS = Object.keys(READERS) as ReadonlyArray<keyof typeof READERS>;

/** The fields that an update writes. `*` keeps the icon when the message has none, since list responses omit it. */
function updatedFields(message: ApplicationMessage, mask: FieldMask | undefined): typeof APPLICATION_FIELDS {
  const fields = maskedFields(ApplicationSchema, message, mask, APPLICATION_FIELDS);
  const isMeant = message.icon.length > 0 || mask?.paths.includes("icon");
  return isMeant ? fields : fields.filter((field) => field !== "icon");
}

/** Parses fields of a message. Throws INVALID_ARGUMENT that names the field. */
function patchFrom(
  message: ApplicationMessage,
  fields: typeof APPLICATION_FIELDS,
  catalog: ProviderCatalog,
): Partial<ApplicationSettings> {
  return Object.assign({}, ...fields.map((field) => READERS[field](message, catalog))) as Partial<ApplicationSettings>;
}

/** Parses a new application. Throws INVALID_ARGUMENT that names the field. */
function newApplicationFrom(message: ApplicationMessage, catalog: ProviderCatalog): CreateApplicationInput {
  const publicKey = message.publicKey === "" ? undefined : value(parsePublicKey(message.publicKey), "public_key");
  return { ...(patchFrom(message, APPLICATION_FIELDS, catalog) as ApplicationSettings), publicKey };
}

function value<Value>(parsed: Parsed<Value>, field: string): Value {
  if ("value" in parsed) return parsed.value;
  const which = parsed.entry === undefined ? "" : `has ${JSON.stringify(parsed.entry)}, which `;
  throw invalidArgument(`application.${field}`, which + parsed.problem);
}

function calls(count: number, field: string): number {
  if (count >= 0 && count <= MAX_CALLS_PER_MINUTE) return count;
  throw invalidArgument(`application.${field}`, `must be from 0 (no limit) to ${MAX_CALLS_PER_MINUTE}`);
}

function lifetime(seconds: number): number {
  if (seconds >= 0 && seconds <= MAX_CALL_TOKEN_SECONDS) return seconds;
  const range = `from 0 (the most) to ${MAX_CALL_TOKEN_SECONDS}`;
  throw invalidArgument("application.max_call_token_seconds", `must be ${range}`);
}

function callerAuthFrom(callerAuth: CallerAuthMessage): Application["callerAuth"] {
  if (callerAuth === CallerAuthMessage.UNSPECIFIED) return "PUBLIC_KEY";
  return known(CallerAuthMessage[callerAuth], "caller_auth") as Application["callerAuth"];
}

function stateFrom(state: State): Application["state"] {
  return state === State.UNSPECIFIED ? "ACTIVE" : (known(State[state], "state") as Application["state"]);
}

/** Refuses unknown enum values, since proto3 accepts any number. */
function known(name: string | undefined, field: string): string {
  if (name === undefined) throw invalidArgument(`application.${field}`, "has a value that this version does not know");
  return name;
}

/** The same with the icon, for responses with a single application. */
function wholeMessageFrom(application: Application, icon: Uint8Array): ApplicationMessage {
  return { ...messageFromApplication(application), icon: Uint8Array.from(icon) };
}

/** An application as shown in lists. An allow-list of members, so that a key hash can never be among them. */
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
    callRules: Object.entries(application.callRules).map(([providerName, rules]) => ({
      providerName,
      rules: rules.map(messageFromRule),
    })),
    maxCallTokenSeconds: application.maxCallTokenSeconds,
    accentColor: application.accentColor,
    state: State[application.state],
    ...(application.captureUntil === 0 ? {} : { captureEndTime: timestampFromMs(application.captureUntil) }),
    createTime: timestampFromMs(application.createdAt),
    updateTime: timestampFromMs(application.updatedAt),
    etag: applicationEtag(application),
  });
}

/** Covers everything an operator can change, and the time of the last change, which a new key counts as. */
function applicationEtag(application: Application): string {
  const { id, name, callerAuth, allowedOrigins, allowedAddresses, allowedRedirectUris, state, updatedAt } = application;
  const { callsPerMinute, connectionCallsPerMinute, maxCallTokenSeconds } = application;
  const rules = [jsonFromCallRules(application.callRules), maxCallTokenSeconds, application.accentColor];
  const lists = [allowedOrigins, allowedAddresses, allowedRedirectUris, rules];
  return etagFrom([id, name, callerAuth, lists, callsPerMinute, connectionCallsPerMinute, state, updatedAt]);
}
