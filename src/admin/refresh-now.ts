import { RelayError } from "../model/errors.js";
import type { Connection } from "../oauth/connection.js";
import { toldStateOf } from "../oauth/refreshable.js";
import type { Refresher } from "../oauth/refresher.js";
import { type Administration, auditEntryFrom, connectionResource } from "./administration.js";

/** Which connection. */
interface NamedConnection {
  readonly application: { readonly id: string; readonly publicKey: string };
  readonly userId: string;
  readonly providerName: string;
}

/** What came of a refresh that an operator asked for; or, as a sentence, why none can help, and none was begun. */
export type Refreshed =
  | {
      /** As it is afterwards. */
      readonly connection: Connection;
      /** Why there is no new token, for people; empty when there is one. */
      readonly problem: string;
    }
  | { readonly hopeless: string };

/**
 * Gets a new token for a connection now, due or not; undefined when there is no such connection. Written down before the
 * provider is asked. Rejects with RelayError STORE_UNAVAILABLE.
 */
export async function refreshNow(
  administration: Administration,
  { refresher }: { readonly refresher: Pick<Refresher, "refresh"> },
  { application, userId, providerName }: NamedConnection,
): Promise<Refreshed | undefined> {
  const { connections, audit } = administration.store;
  const key = { applicationId: application.id, userId, providerName };
  const before = await connections.find(key);
  if (before === undefined) return undefined;
  if (toldStateOf(before, administration.now()).state !== "ACTIVE")
    return { hopeless: "The user must connect again: a refresh cannot help any more." };
  if (before.refreshToken === undefined)
    return { hopeless: "There is nothing to refresh this connection with. The user can connect again." };
  const resource = connectionResource(application.publicKey, userId, providerName);
  const entry = auditEntryFrom(administration, "ConnectionService.RefreshConnection", resource);
  await audit.add({ ...entry, outcome: "DONE" });
  const problem = await problemOf(refresher.refresh(before, true));
  const connection = await connections.find(key);
  return connection && { connection, problem };
}

async function problemOf(refresh: Promise<void>): Promise<string> {
  try {
    await refresh;
    return "";
  } catch (error) {
    if (error instanceof RelayError && error.reason !== "STORE_UNAVAILABLE") return error.message;
    throw error;
  }
}
