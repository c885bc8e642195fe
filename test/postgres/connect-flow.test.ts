import { runOnPostgres } from "./run-on-postgres.js";

await runOnPostgres(() => import("../pages/flow.test.js"));
