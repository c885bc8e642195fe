import { availableParallelism } from "node:os";
import { defineConfig } from "vitest/config";
import { TallyReporter } from "./test/support/tally-reporter.js";

export default defineConfig({
  test: {
    include: ["test/**/*.test.ts"],
    globalSetup: ["test/support/postgres-setup.ts"],
    // One file for each core. The default leaves a core to the main thread, which has next to nothing to do.
    maxWorkers: availableParallelism(),
    testTimeout: 20_000,
    hookTimeout: 30_000,
    // What the authorization server of the tests says of its defaults, and of every Node.js but its favourite ones.
    onConsoleLog: (log) => !log.startsWith("oidc-provider "),
    reporters: ["default", new TallyReporter()],
  },
});
