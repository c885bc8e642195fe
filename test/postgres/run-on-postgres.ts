import { it, vi } from "vitest";
import { POSTGRES_URL } from "../support/postgres.js";

/** Runs the tests of a file once more, with the harness on PostgreSQL. Each file needs a file of its own for it. */
export async function runOnPostgres(load: () => Promise<unknown>): Promise<void> {
  if (POSTGRES_URL === undefined) {
    it.skip("needs PostgreSQL");
    return;
  }
  vi.stubEnv("TEST_DATABASE", "postgres");
  await load();
}
