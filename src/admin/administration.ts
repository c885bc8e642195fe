import type { ApplicationStore } from "../applications/application.js";
import type { AuditEntry, AuditStore } from "../model/audit.js";
import type { ConnectionStore } from "../oauth/connection.js";
import type { OAuthClientStore } from "../oauth/oauth-client.js";
import type { Sealer } from "../sealing/seal.js";
import type { WebhookStore } from "../webhooks/webhook-store.js";

/** What is needed to change stored data on behalf of an operator: used by the administration port and by commands. */
export interface Administration {
  /** Who makes the change: the name of an admin token, or `cli:` and the operating system's user. */
  readonly actor: string;
  readonly store: AdministeredStore;
  readonly sealer: Sealer;
  /** Milliseconds since the epoch. */
  readonly now: () => number;
  readonly newAuditStamp: () => AuditStamp;
}

/** The part of the store that operators change. */
export interface AdministeredStore {
  readonly applications: ApplicationStore;
  readonly connections: ConnectionStore;
  readonly oauthClients: OAuthClientStore;
  readonly webhooks: WebhookStore;
  readonly audit: AuditStore;
}

/** A method that changes data, without its package. */
type ChangingMethod =
  | `ApplicationService.${"Create" | "Update" | "Delete"}Application`
  | "ApplicationService.RotateApplicationKey"
  | "ApplicationService.CreateCallToken"
  | `OAuthClientService.${"Create" | "Update" | "Delete"}OAuthClient`
  | `ConnectionService.${"Put" | "Delete" | "Refresh"}Connection`
  | "ConnectionService.CreateConnectLink"
  | `WebhookService.${"Put" | "Delete"}Webhook`
  | "WebhookService.SendTestEvent"
  | `CallRecordService.${"Start" | "Stop"}CallCapture`
  | "CallService.PerformCall";

/** A command without an equivalent method. */
type ChangingCommand = "relay connection export" | "relay console" | "relay console sign-out" | "relay key rotate";

/** Members whose name in the schema is not just their snake_case form. */
const FIELD_NAMES: ReadonlyMap<string, string> = new Map([
  ["name", "display_name"],
  ["captureUntil", "capture_end_time"],
  ["privateKeyHash", "private_key"],
]);

/** The fields of a change, by their names in the schema. */
export function fieldsOf(change: object): readonly string[] {
  const inSnakeCase = (member: string) => member.replace(/[A-Z]/g, (letter) => `_${letter.toLowerCase()}`);
  return Object.keys(change).map((member) => FIELD_NAMES.get(member) ?? inSnakeCase(member));
}

/** The audit entry that is written with a change. */
export function auditEntryFrom(
  { actor, newAuditStamp }: Pick<Administration, "actor" | "newAuditStamp">,
  method: ChangingMethod | ChangingCommand,
  { name, publicKey }: Resource,
  changedFields: readonly string[] = [],
): AuditEntry {
  return {
    ...newAuditStamp(),
    actor,
    method: method.startsWith("relay ") ? method : `relay.admin.v1.${method}`,
    resource: name,
    publicKey,
    changedFields,
  };
}

/** Writes the audit entry of an action that changes no stored row: before the action. */
export async function auditAction(
  administration: Pick<Administration, "actor" | "newAuditStamp" | "store">,
  method: ChangingMethod | ChangingCommand,
  resource: Resource,
): Promise<void> {
  const entry = auditEntryFrom(administration, method, resource);
  await administration.store.audit.add({ ...entry, outcome: "DONE" });
}

/** Highest counter value within one millisecond: 12 bits. */
const MAX_COUNT = 0xfff;

/** Time and id of an audit entry. The id begins with the time. */
export type AuditStamp = Pick<AuditEntry, "id" | "at">;

/**
 * Creates the generator of stamps for the audit trail. Ids are UUIDs of version 7 with a counter (RFC 9562 sections 5.7
 * and 6.2, method 1). Within a process each id is greater than the one before, even when the clock goes back; across
 * processes the order is that of their clocks. `at` is the time in the id, so a query for entries before `at` excludes
 * the entry itself.
 *
 * @param now milliseconds since the epoch.
 * @param random 8 random bytes.
 */
export function createAuditStamps(now: () => number, random: () => Uint8Array): () => AuditStamp {
  let lastMs = 0;
  let count = 0;
  return () => {
    const ms = Math.max(now(), lastMs);
    count = ms === lastMs ? count + 1 : 0;
    lastMs = count > MAX_COUNT ? ms + 1 : ms;
    count = count > MAX_COUNT ? 0 : count;
    return { id: uuidFrom(lastMs, count, random()), at: lastMs };
  };
}

/** Sorts before every id from this moment on, and after every earlier one. @param at milliseconds since the epoch. */
export function auditIdBefore(at: number): string {
  return `${timeText(at)}-`;
}

/** Parses an ISO 8601 date or time to milliseconds since the epoch; undefined for other text, or without such a day. */
export function parseTime(text: string): number | undefined {
  const [date = ""] = /^\d{4}-\d\d-\d\d(?=T|$)/.exec(text) ?? [];
  // Date.parse() takes the 30th of February for the 2nd of March.
  const isDay = new Date(date).toJSON()?.startsWith(date);
  const time = isDay ? Date.parse(text) : Number.NaN;
  return Number.isNaN(time) ? undefined : time;
}

function uuidFrom(ms: number, count: number, random: Uint8Array): string {
  const bytes = Buffer.from(random.subarray(0, 8));
  // The variant: binary 10.
  bytes[0] = ((bytes[0] as number) & 0x3f) | 0x80;
  const tail = bytes.toString("hex");
  return `${timeText(ms)}-7${count.toString(16).padStart(3, "0")}-${tail.slice(0, 4)}-${tail.slice(4)}`;
}

/** The first two groups: 48 bits of milliseconds. */
function timeText(ms: number): string {
  const text = Math.max(0, Math.floor(ms)).toString(16).padStart(12, "0");
  return `${text.slice(0, 8)}-${text.slice(8)}`;
}

/** The resource that an operator's action concerns. */
export interface Resource {
  /** Such as `applications/KEY/webhook`. */
  readonly name: string;
  /** Public key of its application; empty for none. */
  readonly publicKey: string;
}

export function applicationResource(publicKey: string): Resource {
  return resource(publicKey);
}

/** A user of an application. */
export function userResource(publicKey: string, userId: string): Resource {
  return resource(publicKey, "users", userId);
}

/** An application's OAuth client at a provider. */
export function oauthClientResource(publicKey: string, providerName: string): Resource {
  return resource(publicKey, "oauthClients", providerName);
}

/** A user's connection at a provider. */
export function connectionResource(publicKey: string, userId: string, providerName: string): Resource {
  return resource(publicKey, "users", userId, "connections", providerName);
}

/** An application's webhook. */
export function webhookResource(publicKey: string): Resource {
  return resource(publicKey, "webhook");
}

/** Percent-encodes each part, so that an id with a slash cannot look like another resource. */
function resource(publicKey: string, ...parts: readonly string[]): Resource {
  return { publicKey, name: ["applications", publicKey, ...parts].map(encodeURIComponent).join("/") };
}
