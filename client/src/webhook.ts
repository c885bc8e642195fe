import { Webhook } from "standardwebhooks";

/** An event about a connection; it never holds a token. */
export interface WebhookEvent {
  /** `connection.created`, `connection.reauthorization_required` and so on. */
  readonly type: string;
  /** RFC 3339. */
  readonly timestamp: string;
  readonly data: {
    readonly public_key: string;
    readonly user_id: string;
    readonly provider_name: string;
    readonly reason?: string;
  };
}

/**
 * Verifies a webhook of the relay (Standard Webhooks) and reads its event. An event may come again with the same
 * `webhook-id`.
 *
 * @param body the body as it came: one that was parsed and printed again has another signature.
 * @param headers of the request, in lower case: `webhook-id`, `webhook-timestamp` and `webhook-signature`.
 * @throws Error when signature or time is wrong.
 */
export function verifyWebhook(secret: string, body: string, headers: Readonly<Record<string, unknown>>): WebhookEvent {
  return new Webhook(secret).verify(body, headers as Record<string, string>) as WebhookEvent;
}
