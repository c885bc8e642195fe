import type { SessionJson } from "../../gen/relay/admin/v1/session_pb.js";
import { frameFrom, framesFrom } from "./frames.js";
import { ApiError } from "./loading.js";
import type { Methods, Streams } from "./methods.js";

/** The administration API, over Connect with JSON (https://connectrpc.com/docs/protocol). */
export interface Api {
  /** Rejects with ApiError. */
  call<Name extends keyof Methods>(method: Name, request: Methods[Name][0]): Promise<Methods[Name][1]>;
  /** Yields messages until the relay ends the stream or the signal aborts. Throws ApiError. */
  stream<Name extends keyof Streams>(
    method: Name,
    request: Streams[Name][0],
    signal: AbortSignal,
  ): AsyncGenerator<Streams[Name][1], void, undefined>;
}

interface ErrorJson {
  readonly code?: string;
  readonly message?: string;
  /** May contain a relay.admin.v1.ErrorDetail, which names the wrong field. */
  readonly details?: ReadonlyArray<{ readonly debug?: { readonly field?: string } }>;
}

/** @param onUnauthenticated called when the relay no longer accepts the token (401). */
export function createApi(token: string, onUnauthenticated: () => void): Api {
  async function post(method: string, contentType: string, body: BodyInit, signal?: AbortSignal): Promise<Response> {
    const headers = { "content-type": contentType, "connect-protocol-version": "1" };
    const response = await send(`/relay.admin.v1.${method}`, token, { headers, body, signal: signal ?? null });
    if (response.status === 401) onUnauthenticated();
    if (response.ok) return response;
    throw errorFrom(await response.json().catch(() => ({})), response.status);
  }

  return {
    async call(method, request) {
      const response = await post(method, "application/json", JSON.stringify(request));
      return response.json().catch(failUnanswered);
    },
    async *stream(method, request, signal) {
      const { body } = await post(method, "application/connect+json", frameFrom(request), signal);
      if (body === null) return;
      for await (const { isEnd, json } of framesFrom(body)) {
        const { error } = json as { error?: ErrorJson };
        if (isEnd && error !== undefined) throw errorFrom(error);
        if (!isEnd) yield json as never;
      }
    },
  };
}

/** Shown when a request gets no answer. */
export const NO_ANSWER = "The relay does not answer: check that it is running, and check the network.";

/** Replaces the browser's own message ("Failed to fetch"), which would not help the user. */
function failUnanswered(): never {
  throw new ApiError("unavailable", NO_ANSWER);
}

function errorFrom({ code = "unknown", message = "", details = [] }: ErrorJson, status?: number): ApiError {
  const text = message || `The relay answered with ${status === undefined ? code : `status ${status}`}.`;
  return new ApiError(code, text, details.find(({ debug }) => debug?.field !== undefined)?.debug?.field);
}

/** The signed-in operator. */
export interface Session {
  readonly operatorName: string;
  /** Whether the operator may change things and perform calls; otherwise the session is read-only. */
  readonly mayPerform: boolean;
  /** Public URL of the relay; a placeholder that names the missing setting when it is not known. */
  readonly relayUrl: string;
}

/** Looks up the operator of the token. Rejects with ApiError. */
export async function openSession(api: Api): Promise<Session> {
  const { operatorName = "", role, relayUri }: SessionJson = await api.call("SessionService/GetSession", {});
  return { operatorName, mayPerform: role === "ROLE_OPERATOR", relayUrl: relayUri || "https://RELAY_PUBLIC_URL" };
}

/**
 * Returns the secret of the sign-in link that opened this page and removes it from the address, and so from the
 * browser's history; undefined if there is none.
 */
export function takeSignInSecret(): string | undefined {
  const secret = /^#sign-in=([\w-]+)$/.exec(location.hash)?.[1];
  if (secret !== undefined) history.replaceState(null, "", location.pathname);
  return secret;
}

/** Exchanges a sign-in link's secret (single use) or an admin token for a session token. Rejects with ApiError. */
export async function redeemSignInSecret(secret: string): Promise<string> {
  const response = await send("/console/sign-in", secret, {});
  if (!response.ok)
    throw new ApiError(response.status === 403 ? "unauthenticated" : "unavailable", await response.text());
  const { token } = (await response.json()) as { readonly token: string };
  return token;
}

/** Ends a session on all machines of the relay. Rejects with ApiError unless the relay confirms it. */
export async function endSession(session: string): Promise<void> {
  // The user may close the tab right after signing out.
  const options = { keepalive: true, signal: AbortSignal.timeout(SIGN_OUT_MS) };
  const response = await send("/console/sign-out", session, options).catch(() => undefined);
  // 204: the session has ended now; 401: it had ended already. Any other answer means that it may still be valid.
  if (response?.status === 204 || response?.status === 401) return;
  throw new ApiError("unavailable", NOT_ENDED);
}

/** Timeout for signing out, so that nobody waits for a relay that does not answer. */
const SIGN_OUT_MS = 5000;
const NOT_ENDED =
  "The relay could not end the session; try again. Until it is ended, a copy of it still works until it expires, 12 hours after it began. If trying again does not help, replace your token in the admin token file with a new one and restart the relay.";

/** Sends a request to this port. Rejects with ApiError when the relay does not answer. */
function send(path: string, token: string, { headers, ...options }: RequestInit): Promise<Response> {
  const fixed = { method: "POST", credentials: "omit", redirect: "error" } as const;
  const proof = { authorization: `Bearer ${token}` };
  return fetch(path, { ...options, ...fixed, headers: { ...headers, ...proof } as HeadersInit }).catch(failUnanswered);
}

const KEY = "relay-session";

/** The session token of this tab: not shared with other tabs, and gone when the tab closes. */
export const tokenStorage = {
  read: () => sessionStorage.getItem(KEY) ?? undefined,
  write: (token: string) => sessionStorage.setItem(KEY, token),
  clear: () => sessionStorage.removeItem(KEY),
} as const;
