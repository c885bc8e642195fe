import type { ServiceImpl } from "@connectrpc/connect";
import {
  type ConnectionService,
  type PutConnectionRequest,
  DeleteConnectionResponse_Revocation as Revocation,
} from "../../gen/relay/admin/v1/connection_pb.js";
import type { Provider } from "../providers/provider.js";
import { parseTokenResponse, type TokenResponse, TokenResponseError } from "../tokens/token-response.js";
import { listConnections } from "./connection-list.js";
import { messageFromConnection, summaryFrom } from "./connection-message.js";
import { deleteConnection } from "./delete-connection.js";
import { invalidArgument, required } from "./invalid-argument.js";
import { namedApplication, namedProvider, notFound, providerNameFrom, requiredId } from "./named.js";
import { originParametersFrom } from "./oauth-client-message.js";
import { type AdminOptions, administrationFor } from "./options.js";
import { type PutConnectionInput, putConnection } from "./put-connection.js";

/** Four times the longest tokens together, as the command takes. In characters. */
const MAX_TOKEN_RESPONSE = 64 * 1024;

/** relay.admin.v1.ConnectionService: message → use case → message. */
export function createConnectionService(options: AdminOptions): ServiceImpl<typeof ConnectionService> {
  const { store, now, disconnection } = options;
  return {
    async getConnection(request) {
      const { application, userId, providerName } = await keyFrom(options, request);
      const connection = await store.connections.find({ applicationId: application.id, userId, providerName });
      if (connection === undefined) throw noConnection();
      return messageFromConnection(summaryFrom(connection, application.publicKey), now());
    },
    async listConnections(request) {
      const { rows, nextPageToken } = await listConnections(options, request);
      return { connections: rows.map((row) => messageFromConnection(row, now())), nextPageToken };
    },
    async putConnection(request, context) {
      const input = await inputFrom(options, request);
      const connection = await putConnection(administrationFor(options, context), input);
      return messageFromConnection(summaryFrom(connection, request.publicKey), now());
    },
    async deleteConnection(request, context) {
      const key = await keyFrom(options, request);
      const provider = request.skipRevocation ? "untold" : disconnection;
      const deletion = deleteConnection(administrationFor(options, context), key, provider);
      const revocation = await disconnection.pending.track(deletion);
      if (revocation === undefined) throw noConnection();
      return { revocation: Revocation[revocation] };
    },
  };
}

async function keyFrom(
  { store, catalog }: AdminOptions,
  request: { readonly publicKey: string; readonly userId: string; readonly providerName: string },
) {
  const userId = requiredId(request.userId, "user_id");
  const providerName = providerNameFrom(catalog, request.providerName);
  return { application: await namedApplication(store.applications, request.publicKey), userId, providerName };
}

async function inputFrom(
  { store, catalog }: AdminOptions,
  { publicKey, userId, providerName, originParameters, tokenResponse }: PutConnectionRequest,
): Promise<PutConnectionInput> {
  const provider = namedProvider(catalog, providerName);
  return {
    userId: requiredId(userId, "user_id"),
    provider,
    response: responseFrom(tokenResponse, provider),
    originParameters: originParametersFrom(originParameters, provider, "origin_parameters"),
    application: await namedApplication(store.applications, publicKey),
  };
}

function responseFrom(text: string, { oauth2 }: Provider): TokenResponse {
  if (text.length > MAX_TOKEN_RESPONSE) throw invalidArgument("token_response", "is longer than 64 KiB");
  try {
    return parseTokenResponse(required(text, "token_response"), oauth2?.tokenResponseMember);
  } catch (error) {
    if (!(error instanceof TokenResponseError)) throw error;
    // Its message names the member and never holds a value.
    throw invalidArgument("token_response", `is not one: ${error.message.replace(/\.$/, "")}`);
  }
}

function noConnection() {
  return notFound("connection of this user at this provider");
}
