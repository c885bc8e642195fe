import type { Queries } from "./postgres-session.js";
import { createStatement } from "./postgres-statement.js";

const REMOVE = createStatement<{ application_id: string }>(
  "remove_origins",
  "DELETE FROM application_origins WHERE application_id = :application_id",
);

const INSERT = createStatement<{ application_id: string; origins: string }>(
  "insert_origins",
  `INSERT INTO application_origins (origin, application_id)
   SELECT DISTINCT listed.origin, :application_id FROM jsonb_array_elements_text(:origins::jsonb) AS listed (origin)`,
);

/** Whether any active application lists an origin. */
export const LISTS_ORIGIN = createStatement<{ origin: string }, unknown>(
  "lists_origin",
  `SELECT 1 FROM application_origins JOIN applications ON applications.id = application_id
   WHERE origin = :origin AND state = 'ACTIVE' LIMIT 1`,
);

/** Replaces what an application lists; called inside the transaction that writes the application. */
export async function writeOrigins({ run }: Queries, applicationId: string, origins: readonly string[]): Promise<void> {
  await run(REMOVE, { application_id: applicationId });
  if (origins.length > 0) await run(INSERT, { application_id: applicationId, origins: JSON.stringify(origins) });
}

/** Fills the table for all applications, after they were copied from elsewhere. */
export const FILL_ORIGINS = createStatement<object>(
  "fill_origins",
  `INSERT INTO application_origins (origin, application_id)
   SELECT DISTINCT listed.origin, applications.id
   FROM applications, jsonb_array_elements_text(allowed_origins::jsonb) AS listed (origin)`,
);
