import { runOnPostgres } from "./run-on-postgres.js";

await runOnPostgres(() => import("../oauth/client-credentials.test.js"));
