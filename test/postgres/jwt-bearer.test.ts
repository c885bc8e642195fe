import { runOnPostgres } from "./run-on-postgres.js";

await runOnPostgres(() => import("../oauth/jwt-bearer.test.js"));
