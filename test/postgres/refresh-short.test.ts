import { runOnPostgres } from "./run-on-postgres.js";

await runOnPostgres(() => import("../chaos/refresh-short.test.js"));
