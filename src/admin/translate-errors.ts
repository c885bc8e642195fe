import { Code, ConnectError, type Interceptor } from "@connectrpc/connect";
import { ApplicationExistsError } from "../applications/application.js";
import { ChangedMeanwhileError } from "../model/change-options.js";
import { type Reason, RelayError } from "../model/errors.js";
import { OAuthClientExistsError } from "./put-oauth-client.js";

/** RPC code of each reason that a store or a use case fails with; others are faults of ours. */
const CODES: Partial<Record<Reason, Code>> = {
  // An application that was deleted in the middle of the request.
  INVALID_PUBLIC_KEY: Code.NotFound,
  STORE_UNAVAILABLE: Code.Unavailable,
  OVERLOADED: Code.ResourceExhausted,
};

/** Translates whatever a service of the administration port fails with; what nobody foresaw is told to the log alone. */
export function translateErrors(onFault: (where: string, error: unknown) => void): Interceptor {
  const translated = (error: unknown): ConnectError => {
    if (error instanceof ConnectError) return error;
    const code = codeOf(error);
    if (code !== undefined) return new ConnectError((error as Error).message, code);
    onFault("administration", error);
    return new ConnectError("internal error", Code.Internal);
  };
  return (next) => async (request) => {
    try {
      const response = await next(request);
      return response.stream ? { ...response, message: translating(response.message, translated) } : response;
    } catch (error) {
      throw translated(error);
    }
  };
}

/** A stream may fail at its first message, or at any later one. */
async function* translating<Message>(
  messages: AsyncIterable<Message>,
  translated: (error: unknown) => ConnectError,
): AsyncGenerator<Message, void, undefined> {
  try {
    yield* messages;
  } catch (error) {
    throw translated(error);
  }
}

function codeOf(error: unknown): Code | undefined {
  if (error instanceof ApplicationExistsError || error instanceof OAuthClientExistsError) return Code.AlreadyExists;
  if (error instanceof ChangedMeanwhileError) return Code.Aborted;
  return error instanceof RelayError ? CODES[error.reason] : undefined;
}
