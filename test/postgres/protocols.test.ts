import { runOnPostgres } from "./run-on-postgres.js";

await runOnPostgres(() => import("../protocols.test.js"));
