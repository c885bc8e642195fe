import type { ConnectionJson } from "../../gen/relay/admin/v1/connection_pb.js";
import type { TemplateResult } from "./lit-html.js";
import { visibleText } from "./text.js";
import { stateMark } from "./view.js";

/** Whether calls can be made, in words. */
export function stateOf({ state, stateReason = "" }: ConnectionJson): TemplateResult {
  if (state === "STATE_ACTIVE") return stateMark(true, "Active");
  return stateMark(false, `Must connect again (${visibleText(stateReason)})`);
}

/** Kinds of connection whose secrets never expire. */
const WITHOUT_TOKENS = ["api_key", "basic", "oauth1"];

/** Why a connection without a refresh token is not refreshed, in words. Pure. */
export function withoutRefresh({ tokenType = "" }: ConnectionJson): string {
  return WITHOUT_TOKENS.includes(tokenType) ? "Not needed" : "No refresh token";
}

/** State of a connection in words, and what an operator can do about it. */
export interface Standing {
  readonly isGood: boolean;
  readonly state: string;
  /** Why the connection is in this state; empty when there is nothing to add. */
  readonly reason: string;
  /** Start of the state, RFC 3339; undefined when not known. */
  readonly since: string | undefined;
  /** What to do; empty if nothing needs doing. */
  readonly advice: string;
  /** The view where that is done. */
  readonly place: "link" | "clients" | undefined;
}

/** Pure. */
export function standingOf(connection: ConnectionJson): Standing {
  const { state, stateReason = "", updateTime, refreshFailureCount = 0, hasRefreshToken, expireTime } = connection;
  if (state !== "STATE_ACTIVE") {
    const reason = ENDS.get(stateReason) ?? `It ended: ${stateReason}.`;
    const ended = { isGood: false, state: "The user must connect again", reason, since: updateTime };
    return stateReason === "invalid_client"
      ? { ...ended, advice: "Store it again with a client that the provider accepts.", place: undefined }
      : {
          ...ended,
          advice:
            "Send the user a connect link; until the user has connected, calls fail with REAUTHORIZATION_REQUIRED.",
          place: "link",
        };
  }
  if (refreshFailureCount > 0) return failing(connection);
  if (!hasRefreshToken && expireTime !== undefined)
    return {
      ...{ isGood: true, state: "Works", reason: "Its token will expire and cannot be refreshed.", since: undefined },
      ...{ advice: "Send the user a connect link before the token expires.", place: "link" },
    };
  return { isGood: true, state: "Works", reason: "", since: undefined, advice: "", place: undefined };
}

/** Why only the user can help, by `stateReason`. */
const ENDS: ReadonlyMap<string, string> = new Map([
  [
    "invalid_grant",
    "The provider no longer accepts the refresh token: the user withdrew access, or the token was unused for too long.",
  ],
  ["invalid_client", "The provider no longer accepts the client that belongs to this connection alone."],
  ["refused", "The provider has refused to refresh it for days, while it refreshed others."],
  ["expired", "Its access token has expired, and there is no refresh token."],
  [
    "rotation_lost_suspected",
    "The answer with its newest refresh token was probably lost in transit, and the provider treated the older token as stolen.",
  ],
  ["token_refused", "The provider refuses its access token, which cannot be refreshed."],
]);

function failing(connection: ConnectionJson): Standing {
  const { lastRefreshFailure = "", refreshFailingTime: since } = connection;
  const failed = { isGood: false, state: "Refreshing fails", since };
  if (lastRefreshFailure === "invalid_client")
    return {
      ...{ ...failed, reason: "The provider refuses the application's OAuth client." },
      ...{ advice: "Correct its client id and secret, then refresh this connection now.", place: "clients" },
    };
  const passing = PASSING.get(lastRefreshFailure);
  if (passing !== undefined)
    return {
      ...{ ...failed, reason: passing, place: undefined },
      advice: "This may resolve itself. Calls work as long as the token is valid; the relay retries automatically.",
    };
  return {
    ...{ ...failed, reason: `The provider refuses to refresh it (${lastRefreshFailure}).`, place: "link" },
    advice: "Refresh it now; if that does not help, the user can connect again.",
  };
}

/** Failures that may be temporary, by the kind of the last answer. */
const PASSING: ReadonlyMap<string, string> = new Map([
  ["server_error", "The provider's token endpoint answers with an error of its own."],
  ["rate_limited", "The provider's token endpoint receives too many requests."],
  ["no_answer", "The provider's token endpoint does not answer."],
  ["unreadable", "The provider's token endpoint answers with something that is not a token response."],
  ["temporarily_unavailable", "The provider says that it cannot refresh tokens at the moment."],
  ["internal_error", "The relay could not process the answer; its log says why."],
]);

/** Lifetime of the access token in milliseconds, and the share of it that has passed, from 0 to 1. */
export interface TokenLife {
  readonly lifeMs: number;
  readonly share: number;
}

/** Undefined when the start or the end is not known, or the end is not after the start. Pure. */
export function tokenLifeOf({ tokenTime, expireTime }: ConnectionJson, nowMs: number): TokenLife | undefined {
  if (tokenTime === undefined || expireTime === undefined) return undefined;
  const [from, until] = [Date.parse(tokenTime), Date.parse(expireTime)];
  if (until <= from) return undefined;
  return { lifeMs: until - from, share: Math.min(1, Math.max(0, (nowMs - from) / (until - from))) };
}
