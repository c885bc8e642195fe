import type { Reporter, TestCase, TestModule } from "vitest/node";

/**
 * Prints the one closing line that any reader of a build log understands: `N passed, N failed, N skipped`. Above it
 * stands one line for each group of tests that was skipped, with the reason.
 */
export class TallyReporter implements Reporter {
  onTestRunEnd(modules: readonly TestModule[], unhandledErrors: readonly unknown[]): void {
    const count = { passed: 0, failed: unhandledErrors.length, skipped: 0, pending: 0 };
    for (const module of modules) {
      for (const test of module.children.allTests()) count[test.result().state]++;
      if (module.state() === "failed" && module.children.size === 0) count.failed++;
    }
    const tally = `${count.passed} passed, ${count.failed} failed, ${count.skipped} skipped`;
    process.stdout.write(`\n${[...skippedGroups(modules), tally].join("\n")}\n`);
  }
}

function skippedGroups(modules: readonly TestModule[]): readonly string[] {
  const groups = new Map<string, number>();
  for (const test of modules.flatMap((module) => [...module.children.allTests("skipped")])) {
    const group = `${groupOf(test)}: ${reasonOf(test)}`;
    groups.set(group, (groups.get(group) ?? 0) + 1);
  }
  return [...groups].map(([group, size]) => `skipped ${size} of ${group}`);
}

/** The file, and the outermost `describe()`. */
function groupOf(test: TestCase): string {
  const [title] = test.fullName.split(" > ");
  return `${test.module.relativeModuleId}, ${title}`;
}

function reasonOf(test: TestCase): string {
  const result = test.result();
  return test.meta().skippedBecause ?? (result.state === "skipped" ? result.note : undefined) ?? "not selected";
}
