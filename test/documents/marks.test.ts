import { existsSync, readFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { describe, expect, it } from "vitest";
import { documentPaths, readBlocks } from "../support/document-blocks.js";

/** What somebody may want to run. */
const RUNNABLE = new Set(["sh", "bash", "ts", "js", "mjs", "python"]);
const MARK = /^(run (with |by )|not run: )\S/;

describe("the documents", () => {
  it.each(documentPaths())("%s says of each command with what it is run, or why it is not", (document) => {
    const unmarked = readBlocks(document).filter(
      ({ language, mark }) => RUNNABLE.has(language) && !MARK.test(mark ?? ""),
    );
    expect(unmarked.map(({ line }) => `${document}:${line}`)).toEqual([]);
  });

  it("are all in the index, and link to nothing that is not there", () => {
    const index = readFileSync("README.md", "utf8");
    for (const path of documentPaths().filter((each) => each !== "README.md")) expect(index).toContain(`](${path})`);
    const broken = documentPaths().flatMap((document) =>
      [...readFileSync(document, "utf8").matchAll(/\]\(([^)#\s]+)(?:#([^)]*))?\)/g)]
        .filter(([, target = ""]) => !/^https?:/.test(target) && !existsSync(join(dirname(document), target)))
        .map(([, target]) => `${document}: ${target}`),
    );
    expect(broken).toEqual([]);
  });

  it("name files of the repository that are there", () => {
    const missing = documentPaths().flatMap((document) =>
      [...readFileSync(document, "utf8").matchAll(/`((?:src|test|proto|docs|client|\.ci)\/[\w./-]+)`/g)]
        .filter(([, path = ""]) => !existsSync(path))
        .map(([, path]) => `${document}: ${path}`),
    );
    expect(missing).toEqual([]);
  });

  it("link to headings that are there", () => {
    const broken: string[] = [];
    for (const document of documentPaths()) {
      for (const [, path = "", anchor] of readFileSync(document, "utf8").matchAll(/\]\(([^)#\s]*)#([^)]+)\)/g)) {
        if (/^https?:/.test(path)) continue;
        const target = path === "" ? document : join(dirname(document), path);
        if (!anchorsOf(target).includes(anchor ?? "")) broken.push(`${document}: ${path}#${anchor}`);
      }
    }
    expect(broken).toEqual([]);
  });
});

/** As GitHub makes them of headings. */
function anchorsOf(document: string): string[] {
  const headings = [...readFileSync(document, "utf8").matchAll(/^#+ (.+)$/gm)].map(([, heading]) => heading ?? "");
  return headings.map((heading) =>
    heading
      .toLowerCase()
      .replace(/[^\w\s-]/g, "")
      .replaceAll(" ", "-"),
  );
}
