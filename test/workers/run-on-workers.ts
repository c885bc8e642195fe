import { describe, vi } from "vitest";

/**
 * Runs the tests of these files once more, each with a relay of two workers under their supervisor. Scenarios are tried
 * over one protocol each, unless `npm run test:long` asks for all.
 */
export function runOnWorkers(files: Readonly<Record<string, () => Promise<unknown>>>): void {
  vi.stubEnv("TEST_WORKERS", "2");
  vi.stubEnv("TEST_TURN", process.env["TEST_TURN"] ?? "1");
  for (const [name, load] of Object.entries(files)) describe(name, async () => void (await load()));
}
