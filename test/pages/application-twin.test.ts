import { randomUUID } from "node:crypto";
import { join } from "node:path";
import Database from "better-sqlite3";
import { expect, it } from "vitest";
import { startHarness } from "../support/harness.js";
import { openBrowser } from "./browser.js";
import { consent, startAt, storedOf } from "./flow.js";

it("an attempt does not end at another application that has been given the same public key", async () => {
  const harness = await startHarness();
  const own = await harness.createApplication();
  await harness.putClient(own);
  const browser = openBrowser();
  const callback = await consent(browser, startAt(harness, own, "ada"));
  const { applications } = harness.store;
  const found = await applications.findByPublicKey(own.publicKey);
  if (found === undefined) throw new Error("no application");
  const twin = { ...found, id: randomUUID(), publicKey: "twin" };
  await applications.create(twin);
  await harness.putClient({ ...own, id: twin.id });
  // As after a restore: the old one, whose ticket is still there, has another key now.
  const db = new Database(join(harness.folder, "relay.db"));
  db.prepare("UPDATE applications SET public_key = 'old' WHERE id = ?").run(own.id);
  db.prepare("UPDATE applications SET public_key = ? WHERE id = ?").run(own.publicKey, twin.id);
  db.close();
  const seen = await browser.visit(callback);
  expect(seen.status).toBe(400);
  expect(seen.body).toContain("The application of this connection attempt no longer exists");
  expect(await storedOf(harness, own, "ada")).toBeUndefined();
  await harness.close();
});
