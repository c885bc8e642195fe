import { runOnPostgres } from "./run-on-postgres.js";

await runOnPostgres(() => import("../oauth/connection-values.test.js"));
