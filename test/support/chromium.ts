import { accessSync, constants } from "node:fs";
import { type Browser, chromium } from "playwright-core";
import type { TestOptions } from "vitest";

declare module "vitest" {
  interface TaskMeta {
    /** Why a group of tests is skipped on this machine; printed at the end of the run. */
    skippedBecause?: string;
  }
}

/** Debian's packages; the first is Chromium without windows, whose pages take a third of the work. */
const PATHS = ["/usr/bin/chromium-headless-shell", "/usr/bin/chromium"];
const PATH = process.env["CHROMIUM_PATH"] ?? PATHS.find(isThere) ?? "/usr/bin/chromium";
const ARGS = [
  "--headless",
  "--no-sandbox",
  "--disable-gpu",
  "--disable-quic",
  "--no-first-run",
  "--disable-background-networking",
  "--disable-component-update",
  "--disable-sync",
];

/** Options of a `describe()` whose tests need Chromium: without one they are skipped, and the run says so. */
export const NEEDS_CHROMIUM: TestOptions = isThere(PATH)
  ? {}
  : { skip: true, meta: { skippedBecause: `there is no Chromium at ${PATH} (CHROMIUM_PATH names another)` } };

/** Starts Chromium; `args` come after the usual ones. */
export function launchChromium(args: readonly string[] = []): Promise<Browser> {
  return chromium.launch({ executablePath: PATH, args: [...ARGS, ...args] });
}

function isThere(path: string): boolean {
  try {
    accessSync(path, constants.X_OK);
    return true;
  } catch {
    return false;
  }
}
