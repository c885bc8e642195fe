import type { Application } from "../applications/application.js";
import type { RuleVerdict } from "../applications/call-rules.js";
import type { ErrorType } from "../model/errors.js";
import type { Connection } from "../oauth/connection.js";
import type { RefreshNeed } from "../oauth/token-source.js";
import type { EgressAllowed } from "../providers/egress.js";
import type { Provider } from "../providers/provider.js";
import type { UpstreamRequest } from "../upstream/request.js";
import type { CheckedCall } from "./call.js";

/** What the checks of a call decided; undefined where they did not get so far. Log line, record and explanation are made of it. */
export interface CallDecisions {
  /** Whose public key it is, also when it is disabled. */
  readonly application: Application | undefined;
  readonly caller: ExplainedRule | undefined;
  readonly provider: Provider | undefined;
  /** What is sent. */
  readonly checked: CheckedCall | undefined;
  /** Where to, as the provider's definition allows it, whatever the rules and the connection then say. */
  readonly place: EgressAllowed | undefined;
  /** Whether the url is allowed: by the definition, and then for this connection. */
  readonly egress: ExplainedRule | undefined;
  readonly permission: Permission | undefined;
  readonly connection: Connection | undefined;
}

/** The same while the checks are made. */
export type Deciding = { -readonly [Member in keyof CallDecisions]: CallDecisions[Member] };

/** What the rules of a call token said, and those of the application; each undefined where there are none. */
interface Permission {
  readonly application?: RuleVerdict | undefined;
  readonly callToken?: RuleVerdict | undefined;
}

/** What would become of one call. */
export interface Explanation extends Omit<CallDecisions, "checked" | "place"> {
  readonly refresh: RefreshNeed | undefined;
  /** What would be sent, with {@link MASK} in the place of each token; undefined when nothing would. */
  readonly request: UpstreamRequest | undefined;
  /** The first refusal; undefined when the provider would be asked. */
  readonly refusal: ExplainedRefusal | undefined;
}

/** Stands for a token; made of characters that no encoding changes. */
export const MASK = "***";

/** What was decided, and by which rule. */
export interface ExplainedRule {
  readonly isAllowed: boolean;
  /**
   * Of a caller: the proof that counts (`public-key`, `user-signature`, `call-token`, `private-key`), or what refused it. Of an url: the
   * origin in the provider's definition that it matches, or why there is none.
   */
  readonly rule: string;
}

/** How the call's row would end it. */
interface ExplainedRefusal {
  readonly errorType: ErrorType;
  readonly statusCode: number;
  /** What the caller is told. */
  readonly message: string;
  /** What an operator can do about it; empty when that says it all. */
  readonly advice: string;
}
