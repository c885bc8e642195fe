/** Where an application is told of its connections. */
export interface WebhookEndpoint {
  readonly applicationId: string;
  readonly uri: string;
  /** Key of the signatures, sealed. */
  readonly secret: Uint8Array;
  /** Milliseconds since the epoch. */
  readonly updatedAt: number;
}

/** An event that is to be delivered now. */
export interface DueEvent {
  readonly id: string;
  readonly applicationId: string;
  /** JSON, as it is sent. */
  readonly payload: string;
  /** Deliveries that were begun, this one included. */
  readonly attempts: number;
  /** Milliseconds since the epoch. */
  readonly createdAt: number;
}

/** How many events an application has not been told of. */
export interface WebhookBacklog {
  readonly waiting: number;
  /** When the oldest of them happened, milliseconds since the epoch; undefined when none waits. */
  readonly oldestAt: number | undefined;
}

/**
 * Webhook endpoints, and the events that were not delivered yet. Events are written by the store itself, in the
 * transaction of the change they tell of, and only for applications that have an endpoint. Every method rejects with
 * RelayError STORE_UNAVAILABLE when the store cannot be used.
 */
export interface WebhookStore {
  findEndpoint(applicationId: string): Promise<WebhookEndpoint | undefined>;
  /** Inserts, or replaces the one of the application. */
  putEndpoint(endpoint: WebhookEndpoint): Promise<void>;
  /** Forgets the endpoint and what was not delivered to it. Resolves to false when there was none. */
  deleteEndpoint(applicationId: string): Promise<boolean>;
  /**
   * Takes at most `limit` events that are due, the oldest first. Nobody else gets them before `until` (milliseconds
   * since the epoch): a process that ends in between loses none.
   */
  claimDue(limit: number, until: number, now: number): Promise<DueEvent[]>;
  /** An event was delivered, or is given up. */
  remove(id: string): Promise<void>;
  /** A delivery failed: the event is due again at `nextTryAt`. */
  retryAt(id: string, nextTryAt: number): Promise<void>;
  backlog(applicationId: string): Promise<WebhookBacklog>;
}
