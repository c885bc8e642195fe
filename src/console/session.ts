import type { SessionJson } from "../../gen/relay/admin/v1/session_pb.js";
import type { Api } from "./api.js";

/** Who is signed in. */
export interface Session {
  readonly operatorName: string;
  /** Whether calls may be performed, not only looked at. */
  readonly mayPerform: boolean;
  /** Where callers reach the relay; a stand-in that says what is missing when it is not known. */
  readonly relayUrl: string;
}

/** Asks who the token is of. Rejects with ApiError. */
export async function openSession(api: Api): Promise<Session> {
  const { operatorName = "", role, relayUri }: SessionJson = await api.call("SessionService/GetSession", {});
  return { operatorName, mayPerform: role === "ROLE_OPERATOR", relayUrl: relayUri || "https://RELAY_PUBLIC_URL" };
}

const KEY = "relay-admin-token";

/** The admin token of this tab: gone with it, and in no other one. */
export const tokenStorage = {
  read(): string | undefined {
    return sessionStorage.getItem(KEY) ?? undefined;
  },
  write(token: string): void {
    sessionStorage.setItem(KEY, token);
  },
  clear(): void {
    sessionStorage.removeItem(KEY);
  },
} as const;
