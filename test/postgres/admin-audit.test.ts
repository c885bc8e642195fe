import { runOnPostgres } from "./run-on-postgres.js";

await runOnPostgres(() => import("../admin/audit.test.js"));
