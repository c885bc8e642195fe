import { runOnPostgres } from "./run-on-postgres.js";

await runOnPostgres(() => import("../server/metrics-rules.test.js"));
