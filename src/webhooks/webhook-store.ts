import { createHmac, randomBytes } from "node:crypto";
import { isIP } from "node:net";
import type { Parsed } from "../applications/application.js";
import { parseUrl } from "../lib/parse-url.js";
import type { AuditEntry } from "../model/audit.js";
import { openSealed, type SealBinding, type Sealer, Secret } from "../sealing/seal.js";
import { decideAddress } from "../upstream/address.js";

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

/** How an attempt to deliver an event ended. */
export interface DeliveryOutcome {
  readonly kind: "delivered" | "givenUp" | "retry";
  /** Of the receiver's answer; undefined when none came. */
  readonly statusCode: number | undefined;
  /** When the attempt ended, milliseconds since the epoch. */
  readonly at: number;
}

/** What became of an event so far. */
export interface WebhookDelivery extends DeliveryOutcome {
  /** Grows with every event that was tried first. */
  readonly place: number;
  /** The event's. */
  readonly id: string;
  readonly type: string;
  /** Whose connection it is about; empty for a test. */
  readonly userId: string;
  readonly providerName: string;
  readonly attempts: number;
  /** Milliseconds since the epoch. */
  readonly createdAt: number;
}

/** Which deliveries are wanted, the newest first. */
export interface DeliveryFilter {
  readonly applicationId: string;
  /** Undefined for all. */
  readonly userId: string | undefined;
  /** Only with `userId`; undefined for all. */
  readonly providerName: string | undefined;
  /** Only older ones than of this place; undefined from the newest on. */
  readonly beforePlace: number | undefined;
  readonly limit: number;
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
  finish(event: DueEvent, freeAt: number, outcome: DeliveryOutcome): Promise<void>;
  /** The delivery failed: the event is due again at `nextTryAt`, and another one may be tried at `freeAt`. */
  putOff(event: DueEvent, nextTryAt: number, freeAt: number, outcome: DeliveryOutcome): Promise<void>;
  backlog(applicationId: string): Promise<WebhookBacklog>;
  /** Writes a test event down for an application; resolves to its id, undefined when there is no endpoint. */
  addTest(applicationId: string, now: number, audit: AuditEntry): Promise<string | undefined>;
  /** What became of events. The last 100,000 are kept. */
  listDeliveries(filter: DeliveryFilter): Promise<WebhookDelivery[]>;
  /** Forgets what became of events whose last attempt was before a time; at most `limit`. Resolves to how many. */
  deleteBefore(time: number, limit: number): Promise<number>;
}

/** What an application is told of. */
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
  /** Undefined in a test, which is about no connection. */
  readonly userId: string | undefined;
  readonly providerName: string | undefined;
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

const MAX_LENGTH = 2048;

/**
 * Reads the address that an application's events are sent to: https, or http to this machine where that is allowed.
 * What a host name resolves to is judged when it is dialled.
 */
export function parseWebhookUri(text: string, policy: { readonly allowLoopback: boolean }): Parsed {
  if (text.length > MAX_LENGTH) return { problem: `must have at most ${MAX_LENGTH} characters` };
  const url = /^https?:\/\/[\x21-\x7e]+$/.test(text) ? parseUrl(text) : undefined;
  if (url === undefined) return { problem: "must be an https address" };
  if (text.includes("#") || url.username !== "" || url.password !== "") {
    return { problem: "must have neither a fragment nor a name and password" };
  }
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
    return { problem: "is on this machine; that is only for development, with RELAY_ALLOW_LOOPBACK=true" };
  }
  const isSecure = protocol === "https:" || rule === "loopback";
  return isSecure ? undefined : { problem: "must use https" };
}

/** Of the specification's symmetric secrets; what follows is base64. */
const PREFIX = "whsec_";
/** As long as what HMAC-SHA256 makes of it; the specification asks for 24 to 64. */
const KEY_BYTES = 32;

const DOES_NOT_OPEN =
  "The stored webhook secret cannot be opened. The operator must restore the key file, or set the webhook again.";

/** Makes the signing secret of a new endpoint, in the text form of the Standard Webhooks specification. */
export function createWebhookSecret(): Secret {
  return new Secret(PREFIX + randomBytes(KEY_BYTES).toString("base64"));
}

/** The octets that sign. */
function keyFromSecret(secret: Secret): Buffer {
  return Buffer.from(secret.reveal().slice(PREFIX.length), "base64");
}

/** Seals the signing secret of an application's endpoint. */
export function sealWebhookSecret(sealer: Sealer, applicationId: string, secret: Secret): Uint8Array {
  return sealer.seal(secret.reveal(), bindingOf(applicationId));
}

/** The signing secret in the clear. Throws RelayError STORE_UNAVAILABLE when it does not open. */
export function openWebhookSecret(sealer: Sealer, endpoint: WebhookEndpoint): Secret {
  const { applicationId, secret } = endpoint;
  return new Secret(openSealed(sealer, secret, bindingOf(applicationId), DOES_NOT_OPEN).toString());
}

function bindingOf(applicationId: string): SealBinding {
  return { table: "webhook_endpoints", column: "secret", applicationId, userId: "", providerName: "" };
}

/**
 * The header fields that prove where an event comes from, as the Standard Webhooks specification has them. Pure.
 *
 * @param now when it is sent, milliseconds since the epoch: receivers refuse what was signed long ago.
 * @returns name, value, name, value, …
 */
export function signatureFields({ id, payload }: Pick<DueEvent, "id" | "payload">, secret: Secret, now: number) {
  const timestamp = Math.floor(now / 1000);
  const signature = createHmac("sha256", keyFromSecret(secret))
    .update(`${id}.${timestamp}.${payload}`)
    .digest("base64");
  return ["webhook-id", id, "webhook-timestamp", String(timestamp), "webhook-signature", `v1,${signature}`];
}
