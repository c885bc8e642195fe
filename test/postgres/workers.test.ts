import { runOnWorkers } from "../workers/run-on-workers.js";
import { runOnPostgres } from "./run-on-postgres.js";

await runOnPostgres(async () =>
  runOnWorkers({
    calls: () => import("../protocols.test.js"),
    streams: () => import("../stream-protocols.test.js"),
    "requests passed through": () => import("../api/via/scenarios.test.js"),
  }),
);
