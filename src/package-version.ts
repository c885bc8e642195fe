import { existsSync, readFileSync } from "node:fs";

/** The version of this package. Its package.json stands above `dist/`, or above `src/` where that is run as it is. */
export function packageVersion(): string {
  const files = ["../package.json", "../../package.json"].map((path) => new URL(path, import.meta.url));
  const file = files.find((candidate) => existsSync(candidate));
  return file === undefined ? "unknown" : (JSON.parse(readFileSync(file, "utf8")) as { version: string }).version;
}
