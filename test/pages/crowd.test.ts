import { join } from "node:path";
import Database from "better-sqlite3";
import { expect, it } from "vitest";
import { startHarness } from "../support/harness.js";
import { openBrowser } from "./browser.js";
import { begin, connectIn, startAt } from "./flow.js";

it("too many attempts of one application are told on a page, and are no other's trouble", async () => {
  const harness = await startHarness();
  const [crowded, other] = [await harness.createApplication(), await harness.createApplication()];
  for (const application of [crowded, other]) await harness.putClient(application);
  const db = new Database(join(harness.folder, "relay.db"));
  db.prepare(`
    WITH RECURSIVE n (i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 50000)
    INSERT INTO tickets SELECT i, 'STATE', '', ?, 'eve', x'00', ? FROM n`).run(crowded.id, Date.now() + 600_000);
  db.close();
  const refused = await begin(openBrowser(), startAt(harness, crowded, "ada"));
  expect([refused.status, refused.location]).toEqual([503, ""]);
  expect(refused.body).toContain("Too many users are connecting right now");
  expect((await connectIn(openBrowser(), startAt(harness, other, "ada"))).status).toBe(200);
  await harness.close();
});
