import { type Findings, type Inspect, MANY } from "../model/findings.js";
import { all, createStatement, type Database, first, type Operation } from "./database.js";
import { WITH_TOLD } from "./webhooks.js";

/** Rows of each list. */
const ROWS = 20;

/** Counts rows. @param rows what follows FROM. */
const countOf = (rows: string) =>
  createStatement<object, { readonly count: number; readonly clock?: number }>(
    `SELECT count(*) AS count, :clock AS clock FROM (SELECT 1 FROM ${rows} LIMIT ${MANY}) AS counted`,
  );

const FAILING = countOf("connections WHERE fail_count > 0 AND state = 'ACTIVE'");
const ENDED = countOf("connections WHERE state = 'REAUTHORIZATION_REQUIRED'");
const GIVEN_UP = countOf("webhook_deliveries WHERE outcome = 'GIVEN_UP'");

const REFUSED = createStatement<object, Findings["refusedClients"][number]>(`
   SELECT application_id, provider_name, refused_since AS since FROM oauth_clients WHERE refused_since IS NOT NULL
   ORDER BY refused_since LIMIT ${ROWS}`);

const WAITING = createStatement<object, Findings["waitingEvents"][number]>(`${WITH_TOLD}
   SELECT id AS application_id, (SELECT count(*) FROM (
       SELECT 1 FROM webhook_events WHERE application_id = told.id LIMIT ${MANY}) AS few) AS count,
     (SELECT min(created_at) FROM (
       SELECT created_at FROM webhook_events WHERE application_id = told.id ORDER BY next_try_at LIMIT ${MANY}) AS due
     ) AS since
   FROM told JOIN webhook_endpoints USING (id) LIMIT ${ROWS}`);

const KEY = createStatement<{ keyId: string }, { createdAt: number }>(
  "SELECT created_at FROM key_checks WHERE key_id = :key_id",
);

/** Finds what needs attention. Every statement uses an index that holds little else, and stops at a limit. */
export function createInspect(database: Database): Inspect {
  return (currentKeyId) => database.read(() => inspect(currentKeyId));
}

function* inspect(keyId: string): Operation<Findings> {
  const refusedClients = yield* all(REFUSED, {});
  const waitingEvents = yield* all(WAITING, {});
  const ended = (yield* first(ENDED, {}))?.count ?? 0;
  const givenUpEvents = (yield* first(GIVEN_UP, {}))?.count ?? 0;
  const keyCreatedAt = (yield* first(KEY, { keyId }))?.createdAt;
  // Last, since the caller compares its clock with its own.
  const failing = yield* first(FAILING, {});
  return {
    failing: failing?.count ?? 0,
    ended,
    givenUpEvents,
    keyCreatedAt,
    clock: failing?.clock,
    refusedClients,
    waitingEvents,
  };
}
