import { readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";

/** A fenced block of a document, with the mark in the comment above it. */
export interface DocumentBlock {
  readonly document: string;
  /** Line of the fence, from 1. */
  readonly line: number;
  readonly language: string;
  /** Such as `run with the demo` or `not run: needs root`; undefined without a mark. */
  readonly mark: string | undefined;
  readonly text: string;
}

const BLOCK = /(?:^<!-- (.+?) -->\n)?^```(\w+)\n([\s\S]*?)^```$/gm;

/** Every document of the project, by its path. */
export function documentPaths(): string[] {
  const inDocs = readdirSync("docs", { recursive: true, encoding: "utf8" }).filter((path) => path.endsWith(".md"));
  return [
    "README.md",
    "SECURITY.md",
    "CONTRIBUTING.md",
    "CHANGELOG.md",
    "client/README.md",
    ...inDocs.map((path) => join("docs", path)).sort(),
  ];
}

/** The fenced blocks of a document, in their order. */
export function readBlocks(document: string): DocumentBlock[] {
  const whole = readFileSync(document, "utf8");
  return [...whole.matchAll(BLOCK)].map((match) => ({
    document,
    line: whole.slice(0, match.index).split("\n").length + (match[1] === undefined ? 0 : 1),
    mark: match[1],
    language: match[2] ?? "",
    text: match[3] ?? "",
  }));
}
