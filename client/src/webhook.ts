import { Webhook } from "standardwebhooks";

/** An event about a connection; it never contains a token. */
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
 * Verifies a webhook of the relay (Standard Webhooks) and returns its event. An event may be delivered again with the
 * same `webhook-id`.
 *
 * @param body the raw body: parsing and re-serializing it would invalidate the signature.
 * @param headers request headers with lower-case names: `webhook-id`, `webhook-timestamp` and `webhook-signature`.
 * @throws Error when the signature or the timestamp is wrong.
 */
export function verifyWebhook(secret: string, body: string, headers: Readonly<Record<string, unknown>>): WebhookEvent {
  return new Webhook(secret.trimEnd()).verify(body, headers as Record<string, string>) as WebhookEvent;
}
