import { runOnPostgres } from "./run-on-postgres.js";

await runOnPostgres(() => import("../regress/refresh-reconnect.test.js"));
