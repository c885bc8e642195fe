import { it, vi } from "vitest";
import { POSTGRES_URL } from "../support/postgres.js";

/**
 * Runs the tests of a file once more, with the harness on PostgreSQL. Each file needs a file of its own for it.
 * Scenarios are tried over one protocol each, but in `npm run test:long`.
 */
export async function runOnPostgres(load: () => Promise<unknown>): Promise<void> {
  if (POSTGRES_URL === undefined) {
    it.skip("needs PostgreSQL");
    return;
  }
  vi.stubEnv("TEST_DATABASE", "postgres");
  vi.stubEnv("TEST_TURN", process.env["TEST_TURN"] ?? "2");
  await load();
}
