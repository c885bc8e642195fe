import { Code, ConnectError, type Interceptor } from "@connectrpc/connect";
import { OAuthClientExistsError } from "../administration/put-oauth-client.js";
import { ApplicationExistsError } from "../applications/application.js";
import { ChangedMeanwhileError } from "../change-options.js";
import { type Reason, RelayError } from "../errors.js";

/** RPC code of each reason that a store or a use case fails with; others are faults of ours. */
const CODES: Partial<Record<Reason, Code>> = {
  // An application that was deleted in the middle of the request.
  INVALID_PUBLIC_KEY: Code.NotFound,
  STORE_UNAVAILABLE: Code.Unavailable,
  OVERLOADED: Code.ResourceExhausted,
};

/** Translates whatever a service of the administration port fails with; what nobody foresaw is told to the log alone. */
export function translateErrors(onFault: (where: string, error: unknown) => void): Interceptor {
  return (next) => async (request) => {
    try {
      return await next(request);
    } catch (error) {
      if (error instanceof ConnectError) throw error;
      const code = codeOf(error);
      if (code !== undefined) throw new ConnectError((error as Error).message, code);
      onFault("administration", error);
      throw new ConnectError("internal error", Code.Internal);
    }
  };
}

function codeOf(error: unknown): Code | undefined {
  if (error instanceof ApplicationExistsError || error instanceof OAuthClientExistsError) return Code.AlreadyExists;
  if (error instanceof ChangedMeanwhileError) return Code.Aborted;
  return error instanceof RelayError ? CODES[error.reason] : undefined;
}
