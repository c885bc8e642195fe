import { randomUUID } from "node:crypto";
import type { Application } from "../applications/application.js";
import { type ChangeOptions, requireCurrent } from "../model/change-options.js";
import { type StoredOAuthClient, sealClientSecret } from "../oauth/oauth-client.js";
import type { Provider } from "../providers/provider.js";
import type { Secret } from "../sealing/secret.js";
import { type Administration, auditEntryFrom, oauthClientResource } from "./administration.js";

/** What an operator decides about a client, with its secret in the clear. */
export interface OAuthClientFields {
  readonly clientId: string;
  /** Undefined for a public client. */
  readonly clientSecret: Secret | undefined;
  /** As the provider writes it; empty for the definition's default. */
  readonly scope: string;
  readonly originParameters: Readonly<Record<string, string>>;
}

/** Whose client, at which provider. */
export interface OAuthClientKey {
  readonly application: Application;
  /** The provider's name, never an alias. */
  readonly providerName: string;
}

/** The application has a client at this provider already. */
export class OAuthClientExistsError extends Error {
  constructor() {
    super("The application has an OAuth client at this provider already. Update that one.");
    this.name = "OAuthClientExistsError";
  }
}

/** Names of the schema for what can be changed. */
const FIELD_NAMES: Readonly<Record<keyof OAuthClientFields, string>> = {
  clientId: "client_id",
  clientSecret: "client_secret",
  scope: "scope",
  originParameters: "origin_parameters",
};

/** Stores a new client, its secret sealed. Rejects with OAuthClientExistsError. */
export function createOAuthClient(
  administration: Administration,
  key: OAuthClientKey,
  fields: OAuthClientFields,
): Promise<StoredOAuthClient> {
  return change(administration, "Create", key, fields, (current) => {
    if (current !== undefined) throw new OAuthClientExistsError();
    return clientFrom(administration, key, fields);
  });
}

/** Stores a client, its secret sealed; one that exists is replaced. */
export function putOAuthClient(
  administration: Administration,
  key: OAuthClientKey,
  fields: OAuthClientFields,
  isCurrent?: ChangeOptions<StoredOAuthClient>["isCurrent"],
): Promise<StoredOAuthClient> {
  return change(administration, "Update", key, fields, (current) => {
    if (current !== undefined) requireCurrent({ isCurrent }, current);
    return clientFrom(administration, key, fields);
  });
}

/** Changes what is given. Undefined when there is no such client. Rejects with ChangedMeanwhileError. */
export async function updateOAuthClient(
  administration: Administration,
  key: OAuthClientKey,
  fields: Partial<OAuthClientFields>,
  isCurrent?: ChangeOptions<StoredOAuthClient>["isCurrent"],
): Promise<StoredOAuthClient | undefined> {
  try {
    return await change(administration, "Update", key, fields, (current) => {
      if (current === undefined) throw new MissingError();
      requireCurrent({ isCurrent }, current);
      return { ...current, ...sealedFrom(administration, key, fields), updatedAt: administration.now() };
    });
  } catch (error) {
    if (error instanceof MissingError) return undefined;
    throw error;
  }
}

/** Ends a change of what is not there. */
class MissingError extends Error {}

function change(
  administration: Administration,
  what: "Create" | "Update",
  { application, providerName }: OAuthClientKey,
  fields: Partial<OAuthClientFields>,
  decide: (current: StoredOAuthClient | undefined) => StoredOAuthClient,
): Promise<StoredOAuthClient> {
  const names = (Object.keys(fields) as Array<keyof OAuthClientFields>).map((member) => FIELD_NAMES[member]);
  const resource = oauthClientResource(application.publicKey, providerName);
  const audit = auditEntryFrom(administration, `OAuthClientService.${what}OAuthClient`, resource, names);
  return administration.store.oauthClients.change(application.id, providerName, decide, audit);
}

function clientFrom(
  administration: Administration,
  key: OAuthClientKey,
  { clientSecret, ...fields }: OAuthClientFields,
): StoredOAuthClient {
  return {
    ...fields,
    id: randomUUID(),
    applicationId: key.application.id,
    providerName: key.providerName,
    clientSecret: sealedSecret(administration, key, clientSecret),
    updatedAt: administration.now(),
  };
}

/** A secret that is not named stays; one that is named and undefined makes the client a public one. */
function sealedFrom(
  administration: Administration,
  key: OAuthClientKey,
  fields: Partial<OAuthClientFields>,
): Partial<StoredOAuthClient> {
  const { clientSecret, ...others } = fields;
  if (!("clientSecret" in fields)) return others;
  return { ...others, clientSecret: sealedSecret(administration, key, clientSecret) };
}

function sealedSecret(
  { sealer }: Administration,
  { application, providerName }: OAuthClientKey,
  clientSecret: Secret | undefined,
): Uint8Array | undefined {
  return clientSecret && sealClientSecret(sealer, { applicationId: application.id, providerName }, clientSecret);
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
 * Why an application can have no OAuth client at a provider, as what follows the provider's name in a sentence; undefined
 * when it can. Without a token endpoint nobody is connected in a browser and no token renewed, so that no client is ever
 * used. Pure.
 */
export function oauthClientProblem({ oauth2 }: Provider): string | undefined {
  if (oauth2?.tokenEndpoint !== undefined) return undefined;
  return (
    "has no oauth2.tokenEndpoint in its definition, so that a client would be of no use: store users' tokens with " +
    "'relay connection put', or add oauth2 to a definition of your own (RELAY_PROVIDERS)"
  );
}
