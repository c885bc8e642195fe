import { type Guard, guard } from "./guard.js";

/** What keeps an operator from harm: mistyped paths, lost keys, processes that hang. */
export const OPERATOR_GUARDS: readonly Guard[] = [
  guard(
    "commands: a missing database is a wrong path",
    "cli/open-store.ts",
    ["if (!hasDatabase && (keyFileMustExist || !mayCreate))", "if (!hasDatabase && keyFileMustExist)"],
    "cli/missing-database",
  ),
  guard(
    "config check: the keys are held against the store",
    "store/inspect-store.ts",
    ["sealer === undefined || judgeKeys(store, sealer)", "undefined"],
    "cli/config",
  ),
  guard(
    "config check: the files are looked at beside wrong variables",
    "cli/config-check.ts",
    [
      "...(await fileProblems(read.config, read.wrong))",
      "...(read.problems.length > 0 ? [] : await fileProblems(read.config, read.wrong))",
    ],
    "cli/config",
  ),
  guard("readiness: the keys open the store", "server.ts", ["await probeKeys(store, sealer);", ""], "server/http"),
  guard(
    "workers: one that hangs is ended",
    "workers/pulse.ts",
    ["if (++missed < MAX_MISSED) return;", "return;"],
    "workers/workers",
  ),
];
