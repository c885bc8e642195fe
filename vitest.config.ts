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
      project({ name: "in a process of their own", include: AGAIN }),
    ],
  },
});

function project(test: TestProjectInlineConfiguration["test"]): TestProjectInlineConfiguration {
  return {
    test: {
      // One file more than there are cores: with one for each, a fifth of their time is spent waiting.
      maxWorkers: availableParallelism() + 1,
      // Ends what hangs; a busy machine takes many times as long as a quiet one to start the processes of one test.
      testTimeout: 60_000,
      hookTimeout: 60_000,
      ...test,
    },
  };
}
