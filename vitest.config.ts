import { availableParallelism } from "node:os";
import { defineConfig, type TestProjectInlineConfiguration } from "vitest/config";
import { TallyReporter } from "./test/support/tally-reporter.js";

/** Files that run those of other folders once more, and tell them how by the environment of their process. */
const AGAIN = ["test/postgres/**/*.test.ts", "test/workers/**/*.test.ts"];

export default defineConfig({
  test: {
    globalSetup: ["test/support/postgres-setup.ts"],
    // What the authorization server of the tests says of its defaults, and of every Node.js but its favourite ones.
    onConsoleLog: (log) => !log.startsWith("oidc-provider "),
    reporters: ["default", new TallyReporter()],
    projects: [
      // No module has state of its own, so that files share what is loaded: that takes as long as many of them run.
      project({ name: "tests", include: ["test/**/*.test.ts"], exclude: AGAIN, isolate: false }),
      // Many of them start relays of their own at once.
      project({ name: "in a process of their own", include: AGAIN, testTimeout: 60_000, hookTimeout: 60_000 }),
    ],
  },
});

function project(test: TestProjectInlineConfiguration["test"]): TestProjectInlineConfiguration {
  return {
    test: {
      // One file more than there are cores: with one for each, a fifth of their time is spent waiting.
      maxWorkers: availableParallelism() + 1,
      testTimeout: 20_000,
      hookTimeout: 30_000,
      ...test,
    },
  };
}
