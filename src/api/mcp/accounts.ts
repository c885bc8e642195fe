import { create } from "@bufbuild/protobuf";
import { timestampDate } from "@bufbuild/protobuf/wkt";
import { type Connection, ListConnectionsRequestSchema } from "../../../gen/relay/v1/relay_pb.js";
import { writtenFromRule } from "../../applications/call-rules.js";
import type { CallerFields, CallerProof } from "../../applications/caller.js";
import { originsFor } from "../../providers/origin.js";
import type { Provider, ProviderCatalog } from "../../providers/provider.js";
import type { ConnectionOperations } from "../rpc/connection-operations.js";
import { nextAfter } from "./result.js";

/** What listing accounts needs from the rest of the service. */
export interface AccountOptions {
  readonly connections: Pick<ConnectionOperations, "listConnections">;
  readonly catalog: ProviderCatalog;
}

/** Whose accounts they are. */
export interface AccountHolder {
  readonly fields: CallerFields;
  readonly proof: CallerProof;
}

/** Some dozens are many; with long scopes and rules that is still less than a model's memory. */
const MAX_ACCOUNTS = 100;

/** The accounts of a user, at the providers of the token, and what the token is for. Rejects with RelayError. */
export async function accountsOf({ connections, catalog }: AccountOptions, { fields, proof }: AccountHolder) {
  const token = proof.callToken?.token;
  const { connections: found } = await connections.listConnections(create(ListConnectionsRequestSchema), fields);
  const byProvider = new Map(found.map((connection) => [connection.providerName, connection]));
  const named = [...byProvider.keys(), ...(token?.providers ?? [])].map((name) => catalog.find(name));
  const providers = [...new Set(named)].filter((provider) => provider !== undefined);
  return {
    accounts: providers.slice(0, MAX_ACCOUNTS).map((provider) => accountAt(provider, byProvider.get(provider.name))),
    ...(providers.length > MAX_ACCOUNTS && { notShown: providers.length - MAX_ACCOUNTS }),
    callToken: {
      expires: new Date((token?.expiresAt ?? 0) * 1000).toISOString(),
      providers: token?.providers ?? "any",
      rules: token?.rules?.map(writtenFromRule) ?? "any request",
    },
  };
}

const NOT_CONNECTED = { state: "not connected", next: nextAfter("INVALID_OAUTHID", 401) };

function accountAt(provider: Provider, connection: Connection | undefined) {
  const { name, displayName, documentationUri, allowPrivateNetwork } = provider;
  const known = { provider: name, displayName, ...(documentationUri !== "" && { documentation: documentationUri }) };
  if (connection === undefined) return { ...known, ...NOT_CONNECTED };
  const { scope, originParameters } = connection;
  return {
    ...known,
    ...stateOf(connection),
    // Where a provider of a private network is, is the operator's own business.
    ...(!allowPrivateNetwork && { apiOrigins: originsFor(provider, originParameters) }),
    ...(scope !== "" && { scope: scope.slice(0, MAX_SCOPE_LENGTH) }),
    ...(Object.keys(originParameters).length > 0 && { values: originParameters }),
  };
}

/** Longer ones say nothing more to a model. */
const MAX_SCOPE_LENGTH = 1024;

function stateOf({ state, refreshFailureCount, nextRefreshTime }: Connection) {
  if (state !== "ACTIVE") return { state: "must be connected again", next: nextAfter("REAUTHORIZATION_REQUIRED", 401) };
  if (refreshFailureCount === 0) return { state: "connected" };
  const when = nextRefreshTime && ` The next refresh is tried at ${timestampDate(nextRefreshTime).toISOString()}.`;
  return {
    state: "connected, but refreshing its token fails at the moment",
    next: `Calls work as long as the last token does.${when ?? ""}`,
  };
}
