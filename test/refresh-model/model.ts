import { mkdtempSync, rmSync } from "node:fs";
import { join } from "node:path";
import { openSqliteStore } from "../../src/store/sqlite.js";
import { sealerForTest } from "../oauth/sealer-for-test.js";
import { applicationForTest, MEMORY, NOW } from "../store/store-for-test.js";
import { type Exploration, type ExplorationBounds, explore } from "./explore.js";
import { type ModelOptions, runModel } from "./world.js";

/** How far to look, and at what. */
type ModelBounds = Partial<
  Pick<ModelOptions, "processes" | "tokens" | "graceMs" | "endsFamilies" | "stalls" | "overtakesAtEnd">
> &
  ExplorationBounds;

/** The relay's refreshing over one store. */
export interface Model {
  explore(bounds: ModelBounds): Promise<Exploration>;
  close(): void;
}

/** Makes the store that all runs share, each with connections of its own. */
export async function createModel(): Promise<Model> {
  const folder = mkdtempSync(join(MEMORY, "relay-model-"));
  const clock = { now: NOW };
  const sealer = sealerForTest();
  const store = openSqliteStore(join(folder, "relay.db"), { now: () => clock.now });
  const application = applicationForTest(sealer);
  await store.applications.create(application);
  const shared = { store, sealer, clock, applicationId: application.id };
  return {
    explore({
      processes = 3,
      tokens = 2,
      graceMs = 0,
      endsFamilies = true,
      stalls = false,
      overtakesAtEnd,
      ...bounds
    }) {
      const options = { ...shared, processes, tokens, graceMs, endsFamilies, stalls };
      return explore((choose) => runModel({ ...options, ...(overtakesAtEnd && { overtakesAtEnd }) }, choose), bounds);
    },
    close() {
      store.close();
      rmSync(folder, { recursive: true });
    },
  };
}
