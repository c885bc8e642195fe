import { existsSync, statfsSync } from "node:fs";
import { availableParallelism, tmpdir } from "node:os";
import { resolve } from "node:path";
import { defineConfig, type TestProjectInlineConfiguration } from "vitest/config";
import { BaseSequencer, type TestSpecification } from "vitest/node";
import { TallyReporter } from "./test/support/tally-reporter.js";

/** Files that run those of other folders once more, and tell them how by the environment, which no others may share. */
const AGAIN = [
  "test/postgres/!(workers|relays|refresh-short|records|webhooks|client-credentials|jwt-bearer|oauth1).test.ts",
];
/** What takes long for what it finds beyond the others: `npm run test:long`, which CI runs as well. */
const LONG = [
  // They install packages, build images, and start some dozens of processes.
  "test/package/{pack,release,compile-if-changed}.test.ts",
  "test/{deploy/image,documents/service,bench/bench,console/demo,examples/examples,postgres/workers}.test.ts",
  "test/{workers/*,cli/{demo,monitoring,process,progress,start},store/at-rest,webhooks/document}.test.ts",
  // They wait for a database, a disk or a process to be away, and for it to come back.
  "test/{postgres/relays,regress/store-health,webhooks/restart}.test.ts",
  "test/{api/rpc/buf-curl,lib/wasm-modules,regress/stalled-log}.test.ts",
  // Short runs of what looks for the unknown (`npm run fuzz`, `chaos` and `stress`), and the model of refresh.
  "test/{fuzz,chaos,refresh-model}/*.test.ts",
  "test/{postgres/{refresh-short,records,webhooks,client-credentials,jwt-bearer,oauth1},call/stream-memory}.test.ts",
  // They compile, pack, or fill memory.
  "test/{documents/typescript,package/files,sandbox/prepared-content}.test.ts",
  // Each function that is entered, noted by a breakpoint.
  "test/documents/architecture.test.ts",
  // They need Chromium, and take half a second of two cores for each page.
  "test/{browser/*,console/{console,accessibility,applications,connection,find,first-hour,late-answers,markup,provisioning,sign-in},examples/browser}.test.ts",
];
/** Packages of `npm run sdks`, with what tests they bring. */
const SDKS = ["test/sdks/**"];
/** Those of AGAIN that try every scenario over one protocol; over all of them there. */
const MATRICES = ["test/postgres/{,stream-}protocols.test.ts"];
/** Those of the usual tests that try a thin slice of a matrix there, and all of it here (`test/support/long.ts`). */
const THIN = [
  "test/cli/{serve,config,call,connect,connection-bulk,db,db-backup,db-drill}.test.ts",
  "test/{call/large-answer,oauth/long-verdicts,tenancy,console/snippets,regress/unread-answers*}.test.ts",
];
/** Where processes, browsers and servers are waited for: what begins last of these would be waited for alone. */
const SLOW = /\/test\/(workers|console|browser|cli|chaos|examples|readme|regress\/unread)/;

/** `npx` runs what documents and examples name. Files are in memory where there is a gibibyte for them. */
const ENV = {
  PATH: `${resolve("test/support/bin")}:${process.env["PATH"] ?? ""}`,
  TMPDIR: hasRoom("/dev/shm") ? "/dev/shm" : tmpdir(),
};

/** The usual order, which a first run takes from the size of the files, but slow ones first. */
class SlowFirst extends BaseSequencer {
  override async sort(files: TestSpecification[]): Promise<TestSpecification[]> {
    const sorted = await super.sort(files);
    const rank = ({ moduleId }: TestSpecification) => (SLOW.test(moduleId) ? 0 : 1);
    // Projects stay together: each has processes of its own.
    return sorted.sort((a, b) =>
      a.project.name === b.project.name ? rank(a) - rank(b) : a.project.name < b.project.name ? -1 : 1,
    );
  }
}

export default defineConfig({
  test: {
    globalSetup: ["test/support/postgres-setup.ts"],
    // What the authorization server of the tests says of its defaults, and of every Node.js but its favourite ones.
    onConsoleLog: (log) => !log.startsWith("oidc-provider "),
    reporters: ["default", new TallyReporter()],
    sequence: { sequencer: SlowFirst },
    projects: [
      project({ name: "tests", include: ["test/**/*.test.ts"], exclude: [...AGAIN, ...LONG, ...SDKS] }),
      project({ name: "on PostgreSQL", include: AGAIN }),
      // Some of them run programs that they make, which a folder in memory may forbid.
      project({
        ...{ name: "long", include: [...LONG, ...MATRICES, ...THIN], isolate: true, testTimeout: 300_000 },
        env: { PATH: ENV.PATH, TEST_TURN: "all", TEST_LONG: "1" },
      }),
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
      expect: { poll: { timeout: 20_000 } },
      ...test,
    },
  };
}

function hasRoom(folder: string): boolean {
  if (!existsSync(folder)) return false;
  const { bavail, bsize } = statfsSync(folder);
  return bavail * bsize >= 2 ** 30;
}
