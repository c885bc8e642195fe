import type { Connection } from "../oauth/connection.js";
import type { RefusalEvidence } from "../oauth/verdict.js";
import { createStatement, first, type Operation } from "./database.js";

/** What is asked about: other connections of this one's application and provider, and words of a provider. */
interface EvidenceBounds {
  readonly id: string;
  readonly application_id: string;
  readonly provider_name: string;
  readonly refusal: string;
  readonly since: number;
  /** A day before now. */
  readonly day_start: number;
}

const DAY_MS = 24 * 60 * 60 * 1000;

/** When another connection was refreshed last. */
const OTHERS_REFRESHED_AT = createStatement<EvidenceBounds, { refreshed_at: number }>(
  "others_refreshed_at",
  `SELECT refreshed_at FROM connections
   WHERE application_id = :application_id AND provider_name = :provider_name AND refreshed_at IS NOT NULL AND id <> :id
   ORDER BY refreshed_at DESC LIMIT 1`,
);

/** How many were refreshed since; more than a thousand make no difference. */
const OTHERS_REFRESHED = createStatement<EvidenceBounds, { count: number }>(
  "others_refreshed",
  `SELECT count(*) AS count FROM (
   SELECT 1 FROM connections WHERE application_id = :application_id AND provider_name = :provider_name
     AND refreshed_at > :since AND id <> :id LIMIT 1000) AS others`,
);

/** How many were refused in the same words within a day, of all applications and of this one. */
const REFUSED = createStatement<EvidenceBounds, { all_refused: number; others_refused: number }>(
  "others_refused",
  `SELECT count(*) AS all_refused,
     coalesce(sum(CASE WHEN application_id = :application_id AND refused_at > :since THEN 1 ELSE 0 END), 0) AS others_refused
   FROM (SELECT application_id, refused_at FROM connections WHERE provider_name = :provider_name AND refusal = :refusal
     AND refused_at > :day_start AND id <> :id ORDER BY refused_at DESC LIMIT 1000) AS refused`,
);

/** Reads what other connections show about a refusal; bounded by its indexes and limits. */
export function* findEvidence(
  connection: Connection,
  words: string,
  since: number,
  now: number,
): Operation<RefusalEvidence> {
  const bounds = boundsOf(connection, words, since, now);
  const at = (yield* first(OTHERS_REFRESHED_AT, bounds))?.refreshed_at;
  const counts = yield* first(REFUSED, { ...bounds, since: at ?? 0 });
  return {
    othersRefreshedAt: at,
    othersRefreshed: (yield* first(OTHERS_REFRESHED, bounds))?.count ?? 0,
    othersRefused: counts?.others_refused ?? 0,
    allRefused: counts?.all_refused ?? 0,
  };
}

function boundsOf(
  { id, applicationId, providerName }: Connection,
  words: string,
  since: number,
  now: number,
): EvidenceBounds {
  return {
    id,
    application_id: applicationId,
    provider_name: providerName,
    refusal: words,
    since,
    day_start: now - DAY_MS,
  };
}
