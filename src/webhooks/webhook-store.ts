import type { AuditEntry } from "../model/audit.js";

/** Where an application is told of its connections. */
export interface WebhookEndpoint {
  readonly applicationId: string;
  readonly uri: string;
  /** Key of the signatures, sealed. */
  readonly secret: Uint8Array;
  /** Milliseconds since the epoch. */
  readonly updatedAt: number;
}

/** An event that is to be delivered now, by whoever claimed it. */
export interface DueEvent {
  readonly id: string;
  readonly type: string;
  /** JSON, as it is sent. */
  readonly payload: string;
  /** Deliveries that were begun, this one included. */
  readonly attempts: number;
  /** Milliseconds since the epoch. */
  readonly createdAt: number;
  readonly endpoint: WebhookEndpoint;
  /** Until when nobody else delivers to this endpoint, milliseconds since the epoch. */
  readonly claimedUntil: number;
}

/** How many events an application has not been told of. */
interface WebhookBacklog {
  readonly waiting: number;
  /** When the oldest of them happened, milliseconds since the epoch; undefined when none waits. */
  readonly oldestAt: number | undefined;
}

/**
 * Webhook endpoints, and the events that were not delivered yet. Events are written by the store itself, in the
 * transaction of the change they tell of, and only for applications that have an endpoint. Every method rejects with
 * RelayError STORE_UNAVAILABLE when the store cannot be used. Times are milliseconds since the epoch.
 */
export interface WebhookStore {
  findEndpoint(applicationId: string): Promise<WebhookEndpoint | undefined>;
  /** Inserts, or replaces the one of the application; what waits goes to the new one. */
  putEndpoint(endpoint: WebhookEndpoint, audit?: AuditEntry): Promise<void>;
  /** Forgets the endpoint and what was not delivered to it. Resolves to false when there was none. */
  deleteEndpoint(applicationId: string, audit?: AuditEntry): Promise<boolean>;
  /**
   * Takes events that are due, of at most `limit` endpoints: one of each, the oldest, so that an application is told in
   * order and a slow one holds up nobody else. Endpoints that were idle longest come first. Until `until` nobody else
   * gets an event of the same endpoint; then those that were neither finished nor put off come back, so a process that
   * ends in between loses none. What a disabled application has not been told waits until it is enabled.
   */
  claimDue(limit: number, until: number, now: number): Promise<DueEvent[]>;
  /** The event was delivered, or is given up; the endpoint's next one may follow at `freeAt`. */
  finish(event: DueEvent, freeAt: number): Promise<void>;
  /** The delivery failed: the event is due again at `nextTryAt`, and another one may be tried at `freeAt`. */
  putOff(event: DueEvent, nextTryAt: number, freeAt: number): Promise<void>;
  backlog(applicationId: string): Promise<WebhookBacklog>;
}

/** What an application is told of. */
export type WebhookEventType =
  | "connection.created"
  | "connection.deleted"
  | "connection.reauthorization_required"
  | "connection.refresh_failing"
  | "connection.refresh_recovered";

/** The connection that an event is about; never a token. */
interface WebhookSubject {
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
