import { runOnPostgres } from "./run-on-postgres.js";

await runOnPostgres(() => import("../webhooks/service.test.js"));
