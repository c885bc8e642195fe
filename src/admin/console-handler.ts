import { readdirSync, readFileSync } from "node:fs";
import { createRequire } from "node:module";
import { extname } from "node:path";
import { pathToFileURL } from "node:url";
import type { PathHandler } from "../http/dispatch.js";
import { answerPlain, type HttpRequest, type HttpResponse } from "../http/exchange.js";

const PATH = "/console/";

/**
 * Only the console's own files are loaded and run, and it connects only to this port. With trusted types, only the
 * library's templates can become markup, and these contain only the console's own.
 */
const POLICY = [
  "default-src 'none'",
  "script-src 'self'",
  "style-src 'self'",
  "connect-src 'self'",
  "img-src 'self'",
  "form-action 'none'",
  "frame-ancestors 'none'",
  "base-uri 'none'",
  "require-trusted-types-for 'script'",
  "trusted-types lit-html",
].join("; ");

/** Header fields of every console response. */
const FIELDS: Readonly<Record<string, string>> = {
  "cache-control": "no-cache",
  "content-security-policy": POLICY,
  "cross-origin-opener-policy": "same-origin",
  "cross-origin-resource-policy": "same-origin",
  "referrer-policy": "no-referrer",
  "x-content-type-options": "nosniff",
  "x-frame-options": "DENY",
};

/** Serves the console's files. They are the same for everybody and contain no data, so no token is required. */
export function createConsoleHandler(): PathHandler {
  const files = loadConsoleFiles();
  return (request, response, path) => {
    const isEntry = path === "/" || `${path}/` === PATH;
    const file = path.startsWith(PATH) ? files.get(path.slice(PATH.length)) : undefined;
    if (!isEntry && file === undefined) return undefined;
    answer(request, response, file);
    return Promise.resolve();
  };
}

/** @param file undefined for an address that redirects to the console. */
function answer(request: HttpRequest, response: HttpResponse, file: ConsoleFile | undefined): void {
  if (request.method !== "GET" && request.method !== "HEAD") {
    answerPlain(response, 405, "Send a GET request.", { allow: "GET, HEAD" });
  } else if (file === undefined) {
    response.writeHead(303, { ...FIELDS, location: PATH, "content-length": "0" });
    response.end();
  } else {
    const { contentType, content } = file;
    response.writeHead(200, { ...FIELDS, "content-type": contentType, "content-length": String(content.length) });
    // For HEAD, Node.js sends only the head.
    response.end(content);
  }
}

interface ConsoleFile {
  readonly contentType: string;
  readonly content: Buffer;
}

/** Browsers cannot run TypeScript, so a relay that runs from source serves the built files. */
const FOLDER = new URL(import.meta.url.endsWith(".ts") ? "../../dist/src/console/" : "../console/", import.meta.url);

const TYPES: ReadonlyMap<string, string> = new Map([
  [".css", "text/css; charset=utf-8"],
  [".html", "text/html; charset=utf-8"],
  [".js", "text/javascript; charset=utf-8"],
  [".svg", "image/svg+xml"],
]);

/**
 * Reads the console's files, by name; the page itself has the empty name. All are read once, so that no request reads a
 * file. Throws when there are none, because the package was not built.
 */
function loadConsoleFiles(): ReadonlyMap<string, ConsoleFile> {
  const files = new Map([
    ["lit-html.js", fileAt(libraryUrl("lit-html", "../lit-html.js"))],
    ["uqr.js", fileAt(libraryUrl("uqr", "./index.mjs"), ".js")],
  ]);
  for (const name of readdirSync(FOLDER)) {
    if (TYPES.has(extname(name))) files.set(name === "index.html" ? "" : name, fileAt(new URL(name, FOLDER)));
  }
  return files;
}

/** @param extension determines the content type. */
function fileAt(url: URL, extension = extname(url.pathname)): ConsoleFile {
  return { contentType: TYPES.get(extension) ?? "", content: readFileSync(url) };
}

/** URL of a library's browser build. @param file relative to the file that Node.js resolves. */
function libraryUrl(name: string, file: string): URL {
  return new URL(file, pathToFileURL(createRequire(import.meta.url).resolve(name)));
}
