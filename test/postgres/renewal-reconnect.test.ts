import { runOnPostgres } from "./run-on-postgres.js";

await runOnPostgres(() => import("../regress/renewal-reconnect.test.js"));
