import { runOnPostgres } from "./run-on-postgres.js";

await runOnPostgres(() => import("../api/rest/connections.test.js"));
