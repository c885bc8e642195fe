import type { ErrorOutcome, Outcome } from "../../call/outcome.js";
import type { CallRouteOptions } from "./call-route.js";
import { bodyFromOutcome, bytesFromBody } from "./envelope.js";
import { corsFieldsFor } from "./preflight.js";
import { type Exchange, mustClose } from "./read-call.js";

/** Answers the raw route with the row of a call that has no head of a provider: JSON, with the status of its reason. */
export async function answerRow(
  options: CallRouteOptions,
  { request, response, queryText }: Exchange,
  outcome: ErrorOutcome,
): Promise<void> {
  const cors = await corsFieldsFor(options.allowedOrigins, options.route, request, queryText);
  if (response.destroyed) return;
  const body = bytesFromBody(bodyFromOutcome(outcome satisfies Outcome, undefined));
  response.writeHead(outcome.statusCode, {
    "content-type": "application/json",
    "content-length": body.length,
    "cache-control": "no-store",
    "x-content-type-options": "nosniff",
    "x-call-id": outcome.callId,
    // A provider's own answer never has it, whatever its status.
    "x-error-type": outcome.errorType,
    ...cors,
    ...(cors === undefined ? undefined : { "access-control-expose-headers": "x-call-id, x-error-type, x-request-id" }),
    ...(mustClose(request) ? { connection: "close" } : undefined),
  });
  response.end(body);
}
