import { createHmac, randomBytes } from "node:crypto";
import { isIP } from "node:net";
import { type Parsed, parseWebAddress } from "../applications/application.js";
import type { AuditEntry } from "../model/audit.js";
import { openSealed, type SealBinding, type Sealer, Secret } from "../sealing/seal.js";
import { decideAddress } from "../upstream/address.js";

/** Where an application receives events about its connections. */
export interface WebhookEndpoint {
  readonly applicationId: string;
  readonly uri: string;
  /** Signing key, sealed. */
  readonly secret: Uint8Array;
  /** Milliseconds since the epoch. */
  readonly updatedAt: number;
}

/** A due event, claimed by one deliverer. */
export interface DueEvent {
  readonly id: string;
  readonly type: string;
  /** JSON text, as sent. */
  readonly payload: string;
  /** Attempts begun, including this one. */
  readonly attempts: number;
  /** Milliseconds since the epoch. */
  readonly createdAt: number;
  readonly endpoint: WebhookEndpoint;
  /** Until when no other deliverer uses this endpoint, in milliseconds since the epoch. */
  readonly claimedUntil: number;
}

/** How an attempt to deliver an event ended. */
export interface DeliveryOutcome {
  readonly kind: "delivered" | "givenUp" | "retry";
  /** Status of the receiver's answer; undefined without one. */
  readonly statusCode: number | undefined;
  /** When the attempt ended, milliseconds since the epoch. */
  readonly at: number;
}

/** The state of an event's delivery. */
export interface WebhookDelivery extends DeliveryOutcome {
  /** Increases with every event when it is first tried. */
  readonly place: number;
  /** Id of the event. */
  readonly id: string;
  readonly type: string;
  /** User of the connection that it is about; empty for a test. */
  readonly userId: string;
  readonly providerName: string;
  readonly attempts: number;
  /** Milliseconds since the epoch. */
  readonly createdAt: number;
}

/** Selects deliveries, newest first. */
export interface DeliveryFilter {
  readonly applicationId: string;
  /** Undefined for all. */
  readonly userId: string | undefined;
  /** Only with `userId`; undefined for all. */
  readonly providerName: string | undefined;
  /** Only deliveries before this place; undefined: from the newest on. */
  readonly beforePlace: number | undefined;
  readonly limit: number;
}

/** An application's undelivered events. */
interface WebhookBacklog {
  readonly waiting: number;
  /** When the oldest of them happened, in milliseconds since the epoch; undefined when none waits. */
  readonly oldestAt: number | undefined;
}

/**
 * Stores webhook endpoints and undelivered events. The store itself writes events, in the transaction of the change
 * that they report, and only for applications with an endpoint. Every method rejects with RelayError STORE_UNAVAILABLE
 * when the store cannot be used. Times are milliseconds since the epoch.
 */
export interface WebhookStore {
  findEndpoint(applicationId: string): Promise<WebhookEndpoint | undefined>;
  /** Inserts or replaces the application's endpoint; waiting events go to the new one. */
  putEndpoint(endpoint: WebhookEndpoint, audit?: AuditEntry): Promise<void>;
  /**
   * Deletes the endpoint, then its undelivered events. Resolves to false if there was none. When it fails in between,
   * the events that are left go before the next endpoint is put.
   */
  deleteEndpoint(applicationId: string, audit?: AuditEntry): Promise<boolean>;
  /**
   * Claims due events of at most `limit` endpoints, one of each: the oldest, so that an application gets its events in
   * order and a slow one holds up nobody else. Endpoints that were idle longest come first. Until `until` nobody else
   * gets an event of the same endpoint. After that, events that were neither finished nor put off are due again, so a
   * process that crashes in between loses none. Events of a disabled application wait until it is enabled.
   */
  claimDue(limit: number, until: number, now: number): Promise<DueEvent[]>;
  /** Marks the event as delivered or given up; the endpoint's next one may follow at `freeAt`. */
  finish(event: DueEvent, freeAt: number, outcome: DeliveryOutcome): Promise<void>;
  /**
   * Reschedules the event after a failure: it is due again at `nextTryAt`, and another one may be tried at `freeAt`.
   */
  putOff(event: DueEvent, nextTryAt: number, freeAt: number, outcome: DeliveryOutcome): Promise<void>;
  backlog(applicationId: string): Promise<WebhookBacklog>;
  /** Adds a test event for an application; resolves to its id, or undefined without an endpoint. */
  addTest(applicationId: string, now: number, audit: AuditEntry): Promise<string | undefined>;
  /** Lists deliveries. The last 100,000 are kept. */
  listDeliveries(filter: DeliveryFilter): Promise<WebhookDelivery[]>;
  /** Deletes at most `limit` deliveries whose last attempt was before a time. Resolves to their number. */
  deleteBefore(time: number, limit: number): Promise<number>;
}

/** Types of events. */
export type WebhookEventType =
  | "connection.created"
  | "connection.deleted"
  | "connection.reauthorization_required"
  | "connection.refresh_failing"
  | "connection.refresh_recovered"
  | "webhook.test";

/** The connection that an event is about; never a token. */
interface WebhookSubject {
  readonly publicKey: string;
  /** Undefined in a test, which has no connection. */
  readonly userId: string | undefined;
  readonly providerName: string | undefined;
  /** Why the user must connect again, or the last answer to a refresh; undefined in other events. */
  readonly reason: string | undefined;
}

/**
 * The body of a webhook in the form of the Standard Webhooks specification: `type`, `timestamp`, `data`. Pure.
 *
 * @param now when the event happened, in milliseconds since the epoch.
 */
export function payloadFromEvent(type: WebhookEventType, subject: WebhookSubject, now: number): string {
  const { publicKey, userId, providerName, reason } = subject;
  return JSON.stringify({
    type,
    timestamp: new Date(now).toISOString(),
    data: { public_key: publicKey, user_id: userId, provider_name: providerName, reason },
  });
}

/**
 * Parses the address that an application's events are sent to: https, or http to this machine where that is allowed.
 * The addresses of a host name are checked when it is dialled.
 */
export function parseWebhookUri(text: string, policy: { readonly allowLoopback: boolean }): Parsed {
  const parsed = parseWebAddress(text, "an https address");
  if ("problem" in parsed) return parsed;
  const url = parsed.value;
  if (url.href !== text && url.href !== `${text}/`) return { problem: `must be written as ${url.href}` };
  return hostProblem(url, policy) ?? { value: url.href };
}

function hostProblem({ protocol, hostname }: URL, { allowLoopback }: { readonly allowLoopback: boolean }) {
  const address = hostname.replace(/^\[|\]$/g, "");
  const { result, rule } =
    isIP(address) === 0
      ? { result: "allow", rule: hostname === "localhost" ? "loopback" : "name" }
      : decideAddress(address, { allowLoopback: true, allowPrivateNetwork: false });
  if (result === "deny") return { problem: "must not be an address of a private or special network" };
  if (rule === "loopback" && !allowLoopback) {
    return { problem: "is on this machine, which is allowed only for development, with RELAY_ALLOW_LOOPBACK=true" };
  }
  const isSecure = protocol === "https:" || rule === "loopback";
  return isSecure ? undefined : { problem: "must use https" };
}

/** Prefix of symmetric secrets in the specification; base64 follows. */
const PREFIX = "whsec_";
/** The output length of HMAC-SHA256; the specification requires 24 to 64. */
const KEY_BYTES = 32;

const DOES_NOT_OPEN =
  "The stored webhook secret cannot be opened. The operator must restore the key file, or set the webhook again.";

/** Creates the signing secret of a new endpoint, in the text form of the Standard Webhooks specification. */
export function createWebhookSecret(): Secret {
  return new Secret(PREFIX + randomBytes(KEY_BYTES).toString("base64"));
}

/** The raw signing key. */
function keyFromSecret(secret: Secret): Buffer {
  return Buffer.from(secret.reveal().slice(PREFIX.length), "base64");
}

/** Seals the signing secret of an application's endpoint. */
export function sealWebhookSecret(sealer: Sealer, applicationId: string, secret: Secret): Uint8Array {
  return sealer.seal(secret.reveal(), bindingOf(applicationId));
}

/** Opens the signing secret. Throws RelayError STORE_UNAVAILABLE when it cannot be opened. */
export function openWebhookSecret(sealer: Sealer, endpoint: WebhookEndpoint): Secret {
  const { applicationId, secret } = endpoint;
  return new Secret(openSealed(sealer, secret, bindingOf(applicationId), DOES_NOT_OPEN).toString());
}

function bindingOf(applicationId: string): SealBinding {
  return { table: "webhook_endpoints", column: "secret", applicationId, userId: "", providerName: "" };
}

/**
 * The header fields of the Standard Webhooks specification that prove where an event comes from. Pure.
 *
 * @param now when it is sent, in milliseconds since the epoch: receivers refuse old signatures.
 * @returns name, value, name, value, …
 */
export function signatureFields({ id, payload }: Pick<DueEvent, "id" | "payload">, secret: Secret, now: number) {
  const timestamp = Math.floor(now / 1000);
  const signature = createHmac("sha256", keyFromSecret(secret))
    .update(`${id}.${timestamp}.${payload}`)
    .digest("base64");
  return ["webhook-id", id, "webhook-timestamp", String(timestamp), "webhook-signature", `v1,${signature}`];
}
