import type { Application } from "../applications/application.js";
import type { ErrorType } from "../model/errors.js";
import type { Connection } from "../oauth/connection.js";
import type { RefreshNeed } from "../oauth/token-source.js";
import type { Provider } from "../providers/provider.js";
import type { UpstreamRequest } from "../upstream/request.js";
import type { Permission } from "./trace.js";

/** What would become of one call. What was not reached before a refusal is undefined. */
export interface Explanation {
  /** Whose public key it is, also when it is disabled. */
  readonly application: Application | undefined;
  readonly caller: ExplainedRule | undefined;
  readonly provider: Provider | undefined;
  readonly egress: ExplainedRule | undefined;
  readonly permission: Permission | undefined;
  readonly connection: Connection | undefined;
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
