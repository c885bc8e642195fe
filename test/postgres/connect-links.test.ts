import { runOnPostgres } from "./run-on-postgres.js";

await runOnPostgres(() => import("../pages/links.test.js"));
