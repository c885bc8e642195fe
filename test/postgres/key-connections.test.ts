import { runOnPostgres } from "./run-on-postgres.js";

await runOnPostgres(() => import("../oauth/key-connections.test.js"));
