import { runOnWorkers } from "./run-on-workers.js";

runOnWorkers({
  calls: () => import("../protocols.test.js"),
  streams: () => import("../stream-protocols.test.js"),
  "requests passed through": () => import("../api/via/scenarios.test.js"),
  agents: () => import("../api/mcp/tools.test.js"),
});
