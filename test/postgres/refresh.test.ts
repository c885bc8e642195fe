import { runOnPostgres } from "./run-on-postgres.js";

await runOnPostgres(() => import("../oauth/refresh.test.js"));
