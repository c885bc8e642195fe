import type { ConnectError, HandlerContext, ServiceImpl } from "@connectrpc/connect";
import {
  OAuthClientSchema,
  type OAuthClientService,
  type UpdateOAuthClientRequest,
} from "../../gen/relay/admin/v1/oauth_client_pb.js";
import type { StoredOAuthClient } from "../tokens/oauth-client.js";
import { deleteOAuthClient } from "./delete-oauth-client.js";
import { isCurrentFrom } from "./etag.js";
import { maskedFields } from "./field-mask.js";
import { invalidArgument, requiredMessage } from "./invalid-argument.js";
import { namedApplication, namedProvider, notFound, providerNameFrom } from "./named.js";
import {
  CLIENT_FIELDS,
  clientEtag,
  clientFieldsFrom,
  clientPatchFrom,
  messageFromClient,
} from "./oauth-client-message.js";
import { oauthClientProblem } from "./oauth-client-problem.js";
import { type AdminOptions, administrationFor } from "./options.js";
import { NAME_PART, pageFrom, pageOf } from "./page.js";
import { createOAuthClient, putOAuthClient, updateOAuthClient } from "./put-oauth-client.js";

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
      const message = requiredMessage(request.oauthClient, "oauth_client");
      const { provider, ...key } = await keyFrom(options, message);
      const fields = clientFieldsFrom(message, provider);
      const client = await createOAuthClient(administrationFor(options, context), key, fields);
      return messageFromClient(client, message.publicKey);
    },
    async updateOAuthClient(request, context) {
      const updated = await update(options, request, context);
      if (updated === undefined) throw noClient();
      return messageFromClient(updated, request.oauthClient?.publicKey ?? "");
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
  { oauthClient, updateMask, allowMissing }: UpdateOAuthClientRequest,
  context: HandlerContext,
): Promise<StoredOAuthClient | undefined> {
  const message = requiredMessage(oauthClient, "oauth_client");
  const { provider, ...key } = await keyFrom(options, message);
  const administration = administrationFor(options, context);
  const isCurrent = isCurrentFrom(message.etag, clientEtag);
  const fields = maskedFields(OAuthClientSchema, message, updateMask, CLIENT_FIELDS);
  const updated = await updateOAuthClient(administration, key, clientPatchFrom(message, provider, fields), isCurrent);
  if (updated !== undefined || !allowMissing) return updated;
  return putOAuthClient(administration, key, clientFieldsFrom(message, provider), isCurrent);
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
