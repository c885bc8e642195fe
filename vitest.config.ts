import { availableParallelism } from "node:os";
import { resolve } from "node:path";
import { defineConfig, type TestProjectInlineConfiguration } from "vitest/config";
import { TallyReporter } from "./test/support/tally-reporter.js";

/** Files that run those of other folders once more, and tell them how by the environment, which no others may share. */
const AGAIN = {
  "on workers": ["test/workers/protocols.test.ts"],
  "on workers and PostgreSQL": ["test/postgres/workers.test.ts"],
  "on PostgreSQL": ["test/postgres/!(workers|relays).test.ts"],
};
/** Files that install packages, or start some dozens of processes: `npm run test:long`. */
const LONG = [
  "test/package/pack.test.ts",
  "test/deploy/image.test.ts",
  "test/documents/service.test.ts",
  "test/bench/bench.test.ts",
];
/** Those of AGAIN that try every scenario over one protocol; over all of them there. */
const MATRICES = ["test/{postgres,workers}/protocols.test.ts", "test/postgres/{stream-protocols,workers}.test.ts"];

/** Its `npx` runs what documents and examples name. */
const ENV = { PATH: `${resolve("test/support/bin")}:${process.env["PATH"] ?? ""}` };

export default defineConfig({
  test: {
    globalSetup: ["test/support/postgres-setup.ts"],
    // What the authorization server of the tests says of its defaults, and of every Node.js but its favourite ones.
    onConsoleLog: (log) => !log.startsWith("oidc-provider "),
    reporters: ["default", new TallyReporter()],
    projects: [
      project({ name: "tests", include: ["test/**/*.test.ts"], exclude: [...Object.values(AGAIN).flat(), ...LONG] }),
      ...Object.entries(AGAIN).map(([name, include]) => project({ name, include })),
      project({ name: "long", include: [...LONG, ...MATRICES], env: { ...ENV, TEST_TURN: "all" }, isolate: true }),
    ],
  },
});

function project(test: TestProjectInlineConfiguration["test"]): TestProjectInlineConfiguration {
  return {
    test: {
      env: ENV,
      // No module has state of its own, so that files share what is loaded: that takes as long as many of them run.
      isolate: false,
      // One file more than there are cores: with one for each, a fifth of their time is spent waiting.
      maxWorkers: availableParallelism() + 1,
      // Ends what hangs; a busy machine takes many times as long as a quiet one to start the processes of one test.
      testTimeout: 60_000,
      hookTimeout: 60_000,
      ...test,
    },
  };
}
