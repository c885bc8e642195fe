import { readFileSync } from "node:fs";
import ts from "typescript";
import { describe, expect, it } from "vitest";
import { documentPaths, readBlocks } from "../support/document-blocks.js";

/** What a part of a program has from the rest of it, and packages that are not here. */
const AROUND = `
declare const publicKey: string, privateKey: string, callToken: string, userId: string, userSignature: string, url: string;
declare const button: HTMLButtonElement;
declare function showRepositories(account: import("provider-call-relay-client").Account): void;
declare module "@octokit/rest" {
  export class Octokit {
    constructor(options: { auth?: string; baseUrl?: string; request?: { fetch: typeof fetch } });
    readonly rest: { readonly users: { getAuthenticated(): Promise<{ data: unknown }> } };
  }
}
`;

const CONFIG = "docs/examples/tsconfig.json";

const blocks = documentPaths()
  .flatMap(readBlocks)
  .filter(({ language }) => language === "ts")
  .map(({ document, line, text }) => ({ name: `${document}:${line}`, text }));

/** Each as a module of its own, as the examples are compiled. */
function problemsOf(files: ReadonlyMap<string, string>): readonly string[] {
  const { config } = ts.readConfigFile(CONFIG, ts.sys.readFile);
  const { options } = ts.parseJsonConfigFileContent(config, ts.sys, "docs/examples");
  const host = ts.createCompilerHost(options);
  const { getSourceFile, fileExists, readFile } = host;
  host.fileExists = (path) => files.has(path) || fileExists(path);
  host.readFile = (path) => files.get(path) ?? readFile(path);
  host.getSourceFile = (path, ...rest) => {
    const text = files.get(path);
    return text === undefined ? getSourceFile(path, ...rest) : ts.createSourceFile(path, text, ts.ScriptTarget.ES2023);
  };
  const program = ts.createProgram([...files.keys()], { ...options, noUnusedLocals: false }, host);
  return ts.getPreEmitDiagnostics(program).map(({ file, messageText }) => {
    return `${file?.fileName ?? ""}: ${ts.flattenDiagnosticMessageText(messageText, " ")}`;
  });
}

describe("the TypeScript in the documents", () => {
  it("compiles, beside the client package and the contract", () => {
    expect(blocks.length).toBeGreaterThan(8);
    const files = blocks.map(({ text }, at) => [`docs/examples/block-${at}.ts`, `${text}\nexport {};\n`] as const);
    const problems = problemsOf(new Map([["docs/examples/around.d.ts", AROUND], ...files]));
    const named = problems.map((problem) => problem.replace(/.*block-(\d+)\.ts/, (_, at) => blocks[at]?.name ?? ""));
    expect(named).toEqual([]);
  });

  it("uses the client package wherever it makes a call, beside the contract", () => {
    for (const document of ["README.md", "docs/calling.md", "docs/call-tokens.md", "client/README.md"]) {
      const text = readFileSync(document, "utf8");
      expect(text).toContain('from "provider-call-relay-client"');
      expect(text).toContain('from "provider-call-relay-client/relay/v1"');
    }
  });
});
