import type {
  DeliveryFilter,
  DeliveryOutcome,
  DueEvent,
  WebhookDelivery,
  WebhookStore,
} from "../webhooks/webhook-store.js";
import { all, createStatement, type Database, first, type Operation, run } from "./database.js";

/** A row of webhook_deliveries. */
type DeliveryRow = Omit<WebhookDelivery, "kind"> & { readonly outcome: keyof typeof KINDS };

const KINDS = { DELIVERED: "delivered", GIVEN_UP: "givenUp", RETRYING: "retry" } as const;
const OUTCOMES = { delivered: "DELIVERED", givenUp: "GIVEN_UP", retry: "RETRYING" } as const;

/** Each event has one row, in the place of its first attempt. */
const NOTE = createStatement<Omit<DeliveryRow, "place" | "statusCode"> & { applicationId: string; status: number }>(`
   INSERT INTO webhook_deliveries
     (id, application_id, type, user_id, provider_name, outcome, attempts, status, created_at, attempted_at)
   VALUES (:id, :application_id, :type, :user_id, :provider_name, :outcome, :attempts, :status, :created_at, :at)
   ON CONFLICT (id) DO UPDATE SET outcome = excluded.outcome, attempts = excluded.attempts, status = excluded.status,
     attempted_at = excluded.attempted_at`);

/** Whether the application still exists: if it was deleted during the delivery, nothing is recorded. */
const IS_THERE = createStatement<{ id: string }, unknown>("SELECT 1 FROM applications WHERE id = :id");

/** Most deliveries kept for all applications together: some twenty megabytes. */
const MAX_DELIVERIES = 100_000;

/** Deletes up to five per recorded attempt, so that a surplus soon shrinks. */
const TRIM = createStatement<object>(`DELETE FROM webhook_deliveries WHERE place IN (
     SELECT place FROM webhook_deliveries
     WHERE place <= (SELECT max(place) FROM webhook_deliveries) - ${MAX_DELIVERIES} ORDER BY place LIMIT 5)`);

const COLUMNS = `place, id, type, user_id, provider_name, outcome, attempts, nullif(status, 0) AS status_code, created_at,
   attempted_at AS at`;

/** Selects deliveries of an application. @param condition what else must be true of them. */
const listOf = (condition: string) =>
  createStatement<Omit<DeliveryFilter, "beforePlace"> & { readonly before: number }, DeliveryRow>(`
   SELECT ${COLUMNS} FROM webhook_deliveries WHERE application_id = :application_id ${condition} AND place < :before
   ORDER BY place DESC LIMIT :limit`);

const LIST = listOf("");
const LIST_OF_USER = listOf("AND user_id = :user_id");
const LIST_OF_CONNECTION = listOf("AND user_id = :user_id AND provider_name = :provider_name");

const DELETE_BEFORE = createStatement<{ time: number; limit: number }>(`DELETE FROM webhook_deliveries WHERE place IN (
     SELECT place FROM webhook_deliveries WHERE attempted_at < :time ORDER BY attempted_at LIMIT :limit)`);

/** The records of deliveries. */
export function createDeliveries(database: Database): Pick<WebhookStore, "listDeliveries" | "deleteBefore"> {
  return {
    listDeliveries: async (filter) =>
      (await database.read(() => list(filter))).map(({ outcome, ...row }) => ({ ...row, kind: KINDS[outcome] })),
    deleteBefore: (time, limit) => database.write(() => run(DELETE_BEFORE, { time, limit })),
  };
}

function list({ beforePlace, ...filter }: DeliveryFilter): Operation<DeliveryRow[]> {
  const bounds = { ...filter, before: beforePlace ?? Number.MAX_SAFE_INTEGER };
  if (filter.userId === undefined) return all(LIST, bounds);
  return all(filter.providerName === undefined ? LIST_OF_USER : LIST_OF_CONNECTION, bounds);
}

/** Records how an attempt ended, in the transaction that removes or delays the event. */
export function* noteDelivery(
  { id, type, payload, attempts, createdAt, endpoint: { applicationId } }: DueEvent,
  { kind, statusCode, at }: DeliveryOutcome,
): Operation<void> {
  if ((yield* first(IS_THERE, { id: applicationId })) === undefined) return;
  const { data } = JSON.parse(payload) as { data: { user_id?: string; provider_name?: string } };
  yield* run(NOTE, {
    ...{ id, applicationId, type, attempts, createdAt },
    userId: data.user_id ?? "",
    providerName: data.provider_name ?? "",
    outcome: OUTCOMES[kind],
    status: statusCode ?? 0,
    at,
  });
  yield* run(TRIM, {});
}
