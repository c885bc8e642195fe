import type { Answer } from "./answer.js";
import { errorAnswer } from "./answer.js";

/** Error codes of RFC 6749 section 5.2 that the sandbox uses. */
export type OAuthErrorCode =
  | "invalid_request"
  | "invalid_client"
  | "invalid_grant"
  | "unsupported_grant_type"
  | "invalid_scope";

/** A refusal of the token or revocation endpoint; the message never repeats what was sent. */
export class OAuthError extends Error {
  readonly code: OAuthErrorCode;

  constructor(code: OAuthErrorCode, message: string) {
    super(message);
    this.name = "OAuthError";
    this.code = code;
  }
}

/** https://www.rfc-editor.org/rfc/rfc6749#section-5.1 */
export const NO_STORE = ["Cache-Control", "no-store", "Pragma", "no-cache"] as const;

/** https://www.rfc-editor.org/rfc/rfc6749#section-5.2: 400, except 401 with a challenge for a client that is not known. */
export function answerFromOAuthError(error: OAuthError): Answer {
  if (error.code !== "invalid_client") return errorAnswer(400, error.code, error.message, NO_STORE);
  const challenge = ["WWW-Authenticate", 'Basic realm="sandbox", charset="UTF-8"'];
  return errorAnswer(401, error.code, error.message, [...NO_STORE, ...challenge]);
}
