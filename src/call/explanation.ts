import type { Application } from "../applications/application.js";
import type { RuleVerdict } from "../applications/call-rules.js";
import type { ErrorType } from "../model/errors.js";
import type { Connection } from "../oauth/connection.js";
import type { RefreshNeed } from "../oauth/token-source.js";
import type { EgressAllowed } from "../providers/egress.js";
import type { Provider } from "../providers/provider.js";
import type { UpstreamRequest } from "../upstream/request.js";
import type { CheckedCall } from "./call.js";

/** What the checks of a call decided; undefined for checks not reached. Basis of log line, record and explanation. */
export interface CallDecisions {
  /** The application of the public key, even if disabled. */
  readonly application: Application | undefined;
  readonly caller: ExplainedRule | undefined;
  readonly provider: Provider | undefined;
  /** The caller-controlled part of the request. */
  readonly checked: CheckedCall | undefined;
  /** Where it goes according to the provider's definition, whatever the rules and the connection decide later. */
  readonly place: EgressAllowed | undefined;
  /** Whether the url is allowed: first by the definition, then for this connection. */
  readonly egress: ExplainedRule | undefined;
  readonly permission: Permission | undefined;
  readonly connection: Connection | undefined;
}

/** {@link CallDecisions} while the checks run. */
export type Deciding = { -readonly [Member in keyof CallDecisions]: CallDecisions[Member] };

/** Verdicts of the application's rules and of the call token's; each undefined where there are none. */
interface Permission {
  readonly application?: RuleVerdict | undefined;
  readonly callToken?: RuleVerdict | undefined;
}

/** What would happen to one call. */
export interface Explanation extends Omit<CallDecisions, "checked" | "place"> {
  readonly refresh: RefreshNeed | undefined;
  /** The request that would be sent, with {@link MASK} in place of each token; undefined if none would be. */
  readonly request: UpstreamRequest | undefined;
  /** The first refusal; undefined if the request would be sent to the provider. */
  readonly refusal: ExplainedRefusal | undefined;
}

/** Replaces a token; made of characters that no encoding changes. */
export const MASK = "***";

/** What was decided, and by which rule. */
export interface ExplainedRule {
  readonly isAllowed: boolean;
  /**
   * For a caller: the proof that counted (`public-key`, `user-signature`, `call-token`, `private-key`), or what refused
   * it. For a url: the matching origin in the provider's definition, or why none matches.
   */
  readonly rule: string;
}

/** The error that the call's row would contain. */
interface ExplainedRefusal {
  readonly errorType: ErrorType;
  readonly statusCode: number;
  /** The message to the caller. */
  readonly message: string;
  /** What an operator can do about it; empty when the message is enough. */
  readonly advice: string;
}
