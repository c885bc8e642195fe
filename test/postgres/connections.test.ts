import { runOnPostgres } from "./run-on-postgres.js";

await runOnPostgres(() => import("../rest/connections.test.js"));
