import { runOnPostgres } from "./run-on-postgres.js";

await runOnPostgres(() => import("../stream-protocols.test.js"));
