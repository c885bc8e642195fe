import type { Sealer } from "../tokens/seal.js";
import { headerValue } from "../upstream/fields.js";
import type { Upstream } from "../upstream/request.js";
import type { ReceiverAnswer } from "./retry.js";
import { openWebhookSecret } from "./secret.js";
import { signatureFields } from "./signature.js";
import type { DueEvent } from "./webhook-store.js";

/** What sending needs. */
export interface SendWebhookOptions {
  /** A way out whose answers are small: nothing is read of one but its status and Retry-After. */
  readonly upstream: Upstream;
  readonly sealer: Sealer;
  /** Milliseconds since the epoch. */
  readonly now: () => number;
  /** Default 15,000 ms: the least that the specification recommends, for receivers that work before they answer. */
  readonly deadlineMs?: number;
}

/** How long a receiver has to answer, in milliseconds, when nothing else is said. */
export const DELIVERY_DEADLINE_MS = 15_000;

const FIELDS = ["content-type", "application/json", "user-agent", "provider-call-relay", "accept-encoding", "identity"];

/**
 * Sends one event to its endpoint, signed now, through the same guarded way out as every call: no private network, no
 * redirect. Rejects as `Upstream.send`, or with RelayError STORE_UNAVAILABLE when the secret does not open.
 */
export async function sendWebhook(
  { upstream, sealer, now, deadlineMs = DELIVERY_DEADLINE_MS }: SendWebhookOptions,
  event: DueEvent,
  signal: AbortSignal,
): Promise<ReceiverAnswer> {
  const { endpoint, payload } = event;
  const url = new URL(endpoint.uri);
  const secret = openWebhookSecret(sealer, endpoint);
  const answer = await upstream.send(
    {
      origin: url.origin,
      path: url.pathname + url.search,
      method: "POST",
      headers: [...FIELDS, ...signatureFields(event, secret, now())],
      body: Buffer.from(payload),
      applicationId: endpoint.applicationId,
      connectionId: `webhook ${endpoint.applicationId}`,
      allowPrivateNetwork: false,
    },
    { deadline: performance.now() + deadlineMs, signal },
  );
  return { statusCode: answer.statusCode, retryAfter: headerValue(answer.rawHeaders, "retry-after") };
}
