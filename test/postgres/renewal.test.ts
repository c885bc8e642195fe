import { runOnPostgres } from "./run-on-postgres.js";

await runOnPostgres(() => import("../tokens/renewal.test.js"));
