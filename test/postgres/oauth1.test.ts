import { runOnPostgres } from "./run-on-postgres.js";

await runOnPostgres(() => import("../oauth/oauth1.test.js"));
