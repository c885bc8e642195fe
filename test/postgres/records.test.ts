import { runOnPostgres } from "./run-on-postgres.js";

await runOnPostgres(() => import("../records/service.test.js"));
