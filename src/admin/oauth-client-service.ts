import { randomUUID } from "node:crypto";
import { create } from "@bufbuild/protobuf";
import { timestampFromMs } from "@bufbuild/protobuf/wkt";
import type { ConnectError, HandlerContext, ServiceImpl } from "@connectrpc/connect";
import {
  type OAuthClient as OAuthClientMessage,
  OAuthClientSchema,
  type OAuthClientService,
  type UpdateOAuthClientRequest,
} from "../../gen/relay/admin/v1/oauth_client_pb.js";
import type { Application } from "../applications/application.js";
import { ChangedMeanwhileError, type ChangeOptions, requireCurrent } from "../model/audit.js";
import { type StoredOAuthClient, sealClientSecret } from "../oauth/oauth-client.js";
import { parseValues } from "../providers/connection-value.js";
import type { Provider } from "../providers/provider.js";
import { Secret } from "../sealing/seal.js";
import { type Administration, auditEntryFrom, fieldsOf, oauthClientResource } from "./administration.js";
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
  notFound,
  pageFrom,
  pageOf,
  providerNameFrom,
  required,
} from "./standard-methods.js";

/** relay.admin.v1.OAuthClientService: message → use case → message. */
export function createOAuthClientService(options: AdminOptions): ServiceImpl<typeof OAuthClientService> {
  const { store, catalog } = options;
  const { applications, oauthClients } = store;
  return {
    async getOAuthClient({ publicKey, providerName }) {
      const application = await namedApplication(applications, publicKey);
      const client = await oauthClients.find(application.id, providerNameFrom(catalog, providerName));
      if (client === undefined) throw noClient();
      return messageFromClient(client, publicKey);
    },
    async listOAuthClients(request) {
      const { publicKey } = request;
      const page = pageFrom(request, [publicKey], [NAME_PART]);
      const all = await oauthClients.list((await namedApplication(applications, publicKey)).id);
      const { rows, nextPageToken } = pageOf(page, all, ({ providerName }) => providerName);
      return { oauthClients: rows.map((client) => messageFromClient(client, publicKey)), nextPageToken };
    },
    async createOAuthClient(request, context) {
      const message = required(request.oauthClient, "oauth_client");
      const { provider, ...key } = await keyFrom(options, message);
      const fields = clientFieldsFrom(message, provider);
      const administration = administrationFor(options, context);
      const client = await change(administration, "Create", key, fields, (current) => {
        if (current !== undefined) throw new OAuthClientExistsError();
        return clientFrom(administration, key, fields);
      });
      return messageFromClient(client, message.publicKey);
    },
    async updateOAuthClient(request, context) {
      const message = required(request.oauthClient, "oauth_client");
      return messageFromClient(await update(options, message, request, context), message.publicKey);
    },
    async deleteOAuthClient({ publicKey, providerName, etag }, context) {
      const application = await namedApplication(applications, publicKey);
      const key = { application, providerName: providerNameFrom(catalog, providerName) };
      const administration = administrationFor(options, context);
      if (!(await deleteOAuthClient(administration, key, isCurrentFrom(etag, clientEtag)))) throw noClient();
      return {};
    },
  };
}

async function update(
  options: AdminOptions,
  message: OAuthClientMessage,
  { updateMask, allowMissing }: UpdateOAuthClientRequest,
  context: HandlerContext,
): Promise<StoredOAuthClient> {
  const { provider, ...key } = await keyFrom(options, message);
  const administration = administrationFor(options, context);
  const isCurrent = isCurrentFrom(message.etag, clientEtag);
  const fields = maskedFields(OAuthClientSchema, message, updateMask, CLIENT_FIELDS);
  const { oauthClients } = options.store;
  const isPatch = !allowMissing || (await oauthClients.find(key.application.id, key.providerName)) !== undefined;
  const patch = clientPatchFrom(message, provider, isPatch ? fields : CLIENT_FIELDS);
  return change(administration, "Update", key, patch, (current) => {
    if (current !== undefined) requireCurrent({ isCurrent }, current);
    else if (!allowMissing) throw noClient();
    // It was deleted since it was read: creating it again would lose its secret.
    else if (isPatch || isCurrent !== undefined) throw new ChangedMeanwhileError();
    return clientFrom(administration, key, patch, isPatch ? current : undefined);
  });
}

async function keyFrom(
  { store, catalog }: AdminOptions,
  { publicKey, providerName }: { readonly publicKey: string; readonly providerName: string },
) {
  const provider = namedProvider(catalog, providerName, "oauth_client.provider_name");
  const application = await namedApplication(store.applications, publicKey, "oauth_client.public_key");
  const problem = oauthClientProblem(provider);
  if (problem !== undefined)
    throw invalidArgument("oauth_client.provider_name", `is ${provider.name}, which ${problem}`);
  return { provider, application, providerName: provider.name };
}

function noClient(): ConnectError {
  return notFound("OAuth client of this application at this provider");
}

/** VSCHAR of RFC 6749 appendix A.1 and A.2. */
const CREDENTIAL = /^[\x20-\x7e]{1,4096}$/;
const SCOPE = /^[\x20-\x7e]{0,4096}$/;

/** Writable fields of a client. */
const CLIENT_FIELDS = ["client_id", "client_secret", "scope", "origin_parameters"] as const;

/** The message of a client, without its secret. */
function messageFromClient(client: StoredOAuthClient, publicKey: string): OAuthClientMessage {
  return create(OAuthClientSchema, {
    publicKey,
    providerName: client.providerName,
    clientId: client.clientId,
    hasClientSecret: client.clientSecret !== undefined,
    scope: client.scope,
    originParameters: { ...client.originParameters },
    updateTime: timestampFromMs(client.updatedAt),
    ...(client.refusedSince !== undefined && { refusedTime: timestampFromMs(client.refusedSince) }),
    etag: clientEtag(client),
  });
}

/** Leaves out the sealed secret, since sealing it again under another key is not a change. */
function clientEtag({ id, clientId, clientSecret, scope, originParameters, updatedAt }: StoredOAuthClient): string {
  const parameters = Object.entries(originParameters).sort();
  return etagFrom([id, clientId, clientSecret !== undefined, scope, parameters, updatedAt]);
}

/** Parses a whole client. Throws INVALID_ARGUMENT that names the field. */
function clientFieldsFrom(message: OAuthClientMessage, provider: Provider): OAuthClientFields {
  return clientPatchFrom(message, provider, CLIENT_FIELDS) as OAuthClientFields;
}

/** Parses fields of a client. Throws INVALID_ARGUMENT that names the field. */
function clientPatchFrom(
  message: OAuthClientMessage,
  provider: Provider,
  fields: ReadonlyArray<(typeof CLIENT_FIELDS)[number]>,
): Partial<OAuthClientFields> {
  const has = (field: (typeof CLIENT_FIELDS)[number]) => fields.includes(field);
  return {
    ...(has("client_id") ? { clientId: matching(message.clientId, CREDENTIAL, "client_id") } : {}),
    ...(has("client_secret") ? { clientSecret: secretFrom(message.clientSecret) } : {}),
    ...(has("scope") ? { scope: matching(message.scope, SCOPE, "scope") } : {}),
    ...(has("origin_parameters") ? { originParameters: clientParametersFrom(message, provider) } : {}),
  };
}

/** Values stored with connections. Without any, the client serves all customers of the provider. */
function clientParametersFrom({ originParameters }: OAuthClientMessage, provider: Provider) {
  const parsed = parseValues(new Map(Object.entries(originParameters)), provider, "open", true);
  if ("values" in parsed) return parsed.values;
  throw invalidArgument(`oauth_client.origin_parameters.${parsed.parameter}`, parsed.problem);
}

function secretFrom(text: string): Secret | undefined {
  return text === "" ? undefined : new Secret(matching(text, CREDENTIAL, "client_secret"));
}

/** Never quotes the text: it may be a secret, perhaps in the wrong field. */
function matching(text: string, pattern: RegExp, field: string): string {
  if (pattern.test(text)) return text;
  throw invalidArgument(
    `oauth_client.${field}`,
    text === "" ? "is missing" : "must be printable ASCII of at most 4096 characters",
  );
}

/** What an operator sets for a client, with the secret in the clear. */
export interface OAuthClientFields {
  readonly clientId: string;
  /** Undefined for a public client. */
  readonly clientSecret: Secret | undefined;
  /** In the provider's format; empty for the definition's default. */
  readonly scope: string;
  readonly originParameters: Readonly<Record<string, string>>;
}

/** Identifies a client by application and provider. */
export interface OAuthClientKey {
  readonly application: Application;
  /** The provider's name, never an alias. */
  readonly providerName: string;
}

/** The application already has a client at this provider. */
export class OAuthClientExistsError extends Error {
  constructor() {
    super("The application has an OAuth client at this provider already. Update that one.");
    this.name = "OAuthClientExistsError";
  }
}

/** Stores a client, its secret sealed; replaces an existing one. */
export function putOAuthClient(
  administration: Administration,
  key: OAuthClientKey,
  fields: OAuthClientFields,
): Promise<StoredOAuthClient> {
  return change(administration, "Update", key, fields, () => clientFrom(administration, key, fields));
}

function change(
  administration: Administration,
  what: "Create" | "Update",
  { application, providerName }: OAuthClientKey,
  fields: Partial<OAuthClientFields>,
  decide: (current: StoredOAuthClient | undefined) => StoredOAuthClient,
): Promise<StoredOAuthClient> {
  const resource = oauthClientResource(application.publicKey, providerName);
  const audit = auditEntryFrom(administration, `OAuthClientService.${what}OAuthClient`, resource, fieldsOf(fields));
  return administration.store.oauthClients.change(application.id, providerName, decide, audit);
}

/**
 * A client with these fields, its secret sealed. Without a `clientSecret` member the secret of `current` stays; with an
 * undefined one the client becomes public.
 *
 * @param fields all of them for a new client.
 */
function clientFrom(
  { sealer, now }: Administration,
  { application, providerName }: OAuthClientKey,
  fields: Partial<OAuthClientFields>,
  current?: StoredOAuthClient,
): StoredOAuthClient {
  const { clientSecret, ...others } = fields;
  const key = { applicationId: application.id, providerName };
  const sealed = clientSecret && sealClientSecret(sealer, key, clientSecret);
  const secret = "clientSecret" in fields ? { clientSecret: sealed } : {};
  return { id: randomUUID(), ...key, ...current, ...others, ...secret, updatedAt: now() } as StoredOAuthClient;
}

/** Deletes a client. False when there was none. Rejects with ChangedMeanwhileError. */
export function deleteOAuthClient(
  administration: Administration,
  { application, providerName }: OAuthClientKey,
  isCurrent?: ChangeOptions<StoredOAuthClient>["isCurrent"],
): Promise<boolean> {
  const resource = oauthClientResource(application.publicKey, providerName);
  const audit = auditEntryFrom(administration, "OAuthClientService.DeleteOAuthClient", resource);
  return administration.store.oauthClients.delete(application.id, providerName, { audit, isCurrent });
}

/**
 * Why an application cannot have an OAuth client at a provider; follows the provider's name in a sentence. Undefined
 * when it can. Without a token endpoint no user connects in a browser and no token is refreshed, so a client would
 * never be used. Pure.
 */
export function oauthClientProblem({ oauth2, oauth1 }: Provider): string | undefined {
  if (oauth2?.tokenEndpoint !== undefined || oauth1 !== undefined) return undefined;
  return (
    "has no oauth2.tokenEndpoint in its definition, so a client would have no effect: store users' tokens with " +
    "'relay connection put', or add oauth2 to a definition of your own (RELAY_PROVIDERS)"
  );
}
