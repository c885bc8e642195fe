import { runOnPostgres } from "./run-on-postgres.js";

await runOnPostgres(() => import("../admin/applications.test.js"));
