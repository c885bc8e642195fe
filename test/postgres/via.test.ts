import { runOnPostgres } from "./run-on-postgres.js";

await runOnPostgres(() => import("../api/via/scenarios.test.js"));
