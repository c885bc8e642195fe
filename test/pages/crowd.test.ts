import { join } from "node:path";
import Database from "better-sqlite3";
import { expect, it } from "vitest";
import { startHarness } from "../support/harness.js";
import { openBrowser } from "./browser.js";
import { connectIn, startAt } from "./flow.js";

it("strangers who begin as many attempts as are kept close an application's pages to nobody", async () => {
  const harness = await startHarness();
  const crowded = await harness.createApplication();
  await harness.putClient(crowded);
  const db = new Database(join(harness.folder, "relay.db"));
  for (const kind of ["SESSION", "STATE"]) {
    db.prepare(`
      WITH RECURSIVE n (i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 50000)
      INSERT INTO tickets SELECT ? || i, ?, '', ?, 'eve', x'00', ? + i FROM n`).run(
      ...[kind, kind, crowded.id, Date.now() + 600_000],
    );
  }
  db.close();
  expect((await connectIn(openBrowser(), startAt(harness, crowded, "ada"))).status).toBe(200);
  await harness.close();
});
