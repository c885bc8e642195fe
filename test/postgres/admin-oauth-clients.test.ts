import { runOnPostgres } from "./run-on-postgres.js";

await runOnPostgres(() => import("../admin/oauth-clients.test.js"));
