import { readdirSync, readFileSync } from "node:fs";
import { createRequire } from "node:module";
import { extname } from "node:path";
import { pathToFileURL } from "node:url";

/** One file of the console. */
export interface ConsoleFile {
  readonly contentType: string;
  readonly content: Buffer;
}

/** Browsers read no TypeScript: a relay that runs from its source serves what was built of it. */
const FOLDER = new URL(import.meta.url.endsWith(".ts") ? "../../dist/src/console/" : "../console/", import.meta.url);

const TYPES: ReadonlyMap<string, string> = new Map([
  [".css", "text/css; charset=utf-8"],
  [".html", "text/html; charset=utf-8"],
  [".js", "text/javascript; charset=utf-8"],
  [".svg", "image/svg+xml"],
]);

/**
 * Reads the files of the console, by name; the page itself is the one without a name. All are read once, so that no
 * request leads to a file. Throws when there are none: the package was not built.
 */
export function loadConsoleFiles(): ReadonlyMap<string, ConsoleFile> {
  const files = new Map([["lit-html.js", fileAt(libraryUrl())]]);
  for (const name of readdirSync(FOLDER)) {
    if (TYPES.has(extname(name))) files.set(name === "index.html" ? "" : name, fileAt(new URL(name, FOLDER)));
  }
  return files;
}

function fileAt(url: URL): ConsoleFile {
  return { contentType: TYPES.get(extname(url.pathname)) ?? "", content: readFileSync(url) };
}

/** The library's build for browsers; Node.js resolves the one for itself, in a folder beside it. */
function libraryUrl(): URL {
  return new URL("../lit-html.js", pathToFileURL(createRequire(import.meta.url).resolve("lit-html")));
}
