import { afterEach, beforeEach, describe, expect, it } from "vitest";
import type { Application } from "../../src/applications/application.js";
import { sealerForTest } from "../oauth/sealer-for-test.js";
import { STORES, type StoreBed } from "./store-beds.js";
import { applicationForTest, connectionForTest, NOW } from "./store-for-test.js";

const sealer = sealerForTest();

/**
 * Copies the one connection there is, so often that SQLite needs several slices, ends every tenth of the copies, and
 * lets every fifth fail: half of those that fail have ended.
 */
const COPY = `
  WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 20500)
  INSERT INTO connections (id, application_id, user_id, provider_name, state, access_token, token_type, scope,
    origin_parameters, obtained_at, version, created_at, updated_at, fail_count)
  SELECT id || i, application_id, user_id, provider_name || i,
    CASE WHEN i % 10 = 0 THEN 'REAUTHORIZATION_REQUIRED' ELSE state END,
    access_token, token_type, scope, origin_parameters, obtained_at, version, created_at, updated_at,
    CASE WHEN i % 5 = 0 THEN i ELSE 0 END
  FROM connections, n`;

describe.each(STORES)("countConnections() in $name", ({ createBed }) => {
  let at: StoreBed;
  let application: Application;
  beforeEach(async () => {
    at = await createBed();
    application = applicationForTest(sealer);
  });
  afterEach(() => at.remove());

  it("counts each state, also one in which no connection is, and the active ones whose refresh fails", async () => {
    const store = await at.open();
    const counted = async () => {
      const { states, refreshFailing } = await store.countConnections();
      return [...states, ["failing", refreshFailing]];
    };
    expect(await counted()).toEqual([
      ["ACTIVE", 0],
      ["REAUTHORIZATION_REQUIRED", 0],
      ["failing", 0],
    ]);
    await store.applications.create(application);
    const key = { applicationId: application.id, userId: "ada", providerName: "github" };
    await store.connections.put(connectionForTest(sealer, key), NOW);
    await at.run(COPY);
    expect(await counted()).toEqual([
      ["ACTIVE", 18_451],
      ["REAUTHORIZATION_REQUIRED", 2050],
      ["failing", 2050],
    ]);
  });
});
