import { runOnPostgres } from "./run-on-postgres.js";

await runOnPostgres(() => import("../chaos/renewal-short.test.js"));
