import type { ChangeOptions } from "../model/change-options.js";
import type { StoredOAuthClient } from "../tokens/oauth-client.js";
import type { Administration } from "./administration.js";
import { auditEntryFrom } from "./audit-entry.js";
import type { OAuthClientKey } from "./put-oauth-client.js";
import { oauthClientResource } from "./resource.js";

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
