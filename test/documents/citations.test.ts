import { readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { describe, expect, it } from "vitest";

/** A document of rows and sections that comments cite, by the word that they use for it. */
const CITED = { threats: "docs/threats.md", compat: "docs/compatibility.md" } as const;
/** `threats H01-H22`, `threats 2F, I23, U38`, `compat C11`: the word, then ids and section numbers. */
const CITATION = /\b(threats|compat) ([A-Z]?\d[\w.]*(?:(?:, | and | to |-)[A-Z]?\d[\w.]*)*)/gi;
const ID = /[A-Z]?\d+(?:\.\d+)*[A-Z]?/g;

/** Every comment's text, so that a citation may go on in the next line. */
function sourcesIn(folder: string): [path: string, text: string][] {
  const files = readdirSync(folder, { recursive: true, encoding: "utf8" }).filter(
    (path) => path.endsWith(".ts") && !path.includes("node_modules"),
  );
  return files.map((path) => {
    const text = readFileSync(join(folder, path), "utf8");
    return [join(folder, path), text.replace(/\n\s*(?:\*|\/\/) /g, " ")];
  });
}

function citations() {
  return ["src", "test"]
    .flatMap(sourcesIn)
    .flatMap(([path, text]) =>
      [...text.matchAll(CITATION)].flatMap(([, word = "", list = ""]) =>
        [...list.matchAll(ID)].map(([id]) => ({ path, word: word.toLowerCase() as keyof typeof CITED, id })),
      ),
    );
}

/** Ids of rows and numbers of sections. */
function anchorsOf(document: string): Set<string> {
  const text = readFileSync(document, "utf8");
  const rows = [...text.matchAll(/^\| ([A-Z]\d+) \|/gm)];
  const sections = [...text.matchAll(/^#+ (\d[\dA-Z.]*?)\.? /gm)];
  return new Set([...rows, ...sections].map(([, id = ""]) => id));
}

describe("comments in src and test", () => {
  it("cite rows and sections that are there", () => {
    const anchors = { threats: anchorsOf(CITED.threats), compat: anchorsOf(CITED.compat) };
    const all = citations();
    expect(all.filter(({ word }) => word === "threats").length).toBeGreaterThan(60);
    expect(all.filter(({ word }) => word === "compat").length).toBeGreaterThan(8);
    const broken = all.filter(({ word, id }) => !anchors[word].has(id));
    expect(broken.map(({ path, word, id }) => `${path}: ${word} ${id}`)).toEqual([]);
  });

  it("cite no document that the repository does not have", () => {
    const documents = new Set(readdirSync("docs", { recursive: true, encoding: "utf8" }));
    const named = ["src", "test"]
      .flatMap(sourcesIn)
      .flatMap(([path, text]) =>
        [...text.matchAll(/(?<![\w/-])(?:docs\/)?([a-z][\w-]*\.md)\b/g)].map(([, name = ""]) => ({ path, name })),
      );
    const missing = named.filter(({ name }) => !documents.has(name));
    expect(missing.map(({ path, name }) => `${path}: ${name}`)).toEqual([]);
  });
});
