import { existsSync, readFileSync } from "node:fs";

interface Manifest {
  readonly version: string;
  readonly engines: { readonly node: string };
}

/** The version of this package. */
export function packageVersion(): string {
  return readManifest()?.version ?? "unknown";
}

/** The versions of Node.js that it works with, as a range of npm; `*` where that is not known. */
export function supportedNode(): string {
  return readManifest()?.engines.node ?? "*";
}

/** Its package.json stands above `dist/`, or above `src/` where that is run as it is. */
function readManifest(): Manifest | undefined {
  const files = ["../../package.json", "../../../package.json"].map((path) => new URL(path, import.meta.url));
  const file = files.find((candidate) => existsSync(candidate));
  return file === undefined ? undefined : (JSON.parse(readFileSync(file, "utf8")) as Manifest);
}
