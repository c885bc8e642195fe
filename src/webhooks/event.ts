/** What an application is told of. */
export type WebhookEventType =
  | "connection.created"
  | "connection.deleted"
  | "connection.reauthorization_required"
  | "connection.refresh_failing"
  | "connection.refresh_recovered";

/** The connection that an event is about; never a token. */
export interface WebhookSubject {
  readonly publicKey: string;
  readonly userId: string;
  readonly providerName: string;
  /** Why the user must connect again, or what the last answer to a refresh was; undefined in other events. */
  readonly reason: string | undefined;
}

/**
 * The body of a webhook as the Standard Webhooks specification shapes it: `type`, `timestamp`, `data`. Pure.
 *
 * @param now when it happened, milliseconds since the epoch.
 */
export function payloadFromEvent(type: WebhookEventType, subject: WebhookSubject, now: number): string {
  const { publicKey, userId, providerName, reason } = subject;
  return JSON.stringify({
    type,
    timestamp: new Date(now).toISOString(),
    data: { public_key: publicKey, user_id: userId, provider_name: providerName, reason },
  });
}
