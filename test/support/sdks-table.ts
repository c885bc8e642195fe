import { readdirSync, readFileSync, writeFileSync } from "node:fs";
import { fileURLToPath } from "node:url";

/** The document with the table of SDKs. */
export const DOCUMENT = "docs/sdks.md";

/** The command that writes the table. */
export const REWRITE = "npx tsx test/support/sdks-table.ts";

const CLIENTS = "test/sdks/clients";
const MARKS = ["<!-- sdks -->\n", "<!-- /sdks -->"] as const;
const HEAD = "| SDK | Version | Set up |\n|---|---|---|\n";

/** The line of code that sets an SDK up, in a file of test/sdks/clients. */
const CONNECT = /^ {2}connect: (?:async )?\(\w+\) =>\s+([\s\S]+?),\n {2}\w/m;

/** Lines of the document for these clients, given as the text of their files. Pure. */
export function sdksTable(clients: readonly string[], versions: ReadonlyMap<string, string>): string {
  return HEAD + clients.map((source) => rowFrom(source, versions)).join("");
}

/** Versions that `npm run sdks` installs, by the name of the package. */
export function installedVersions(): ReadonlyMap<string, string> {
  const { packages } = JSON.parse(readFileSync("test/sdks/package-lock.json", "utf8"));
  return new Map(Object.entries<string>(packages[""].dependencies));
}

/** The document with the table that belongs there. */
export function withSdks(document: string): string {
  const clients = readdirSync(CLIENTS)
    .sort()
    .map((file) => readFileSync(`${CLIENTS}/${file}`, "utf8"));
  const start = document.indexOf(MARKS[0]) + MARKS[0].length;
  const end = document.indexOf(MARKS[1], start);
  return document.slice(0, start) + sdksTable(clients, installedVersions()) + document.slice(end);
}

function rowFrom(source: string, versions: ReadonlyMap<string, string>): string {
  const name = /^ {2}package: "(.+)",$/m.exec(source)?.[1] ?? "";
  const code = CONNECT.exec(source)?.[1];
  const version = versions.get(name);
  if (code === undefined || version === undefined) throw new Error(`no package, version or connect in: ${source}`);
  return `| [${name}](https://www.npmjs.com/package/${name}) | ${version} | ${quoted(onOneLine(code))} |\n`;
}

/** As the formatter would write it if there were room. */
function onOneLine(code: string): string {
  return code
    .replace(/\s+/g, " ")
    .replace(/^\{ (.+) return \w+; \}$/, "$1")
    .replace(/([([]) /g, "$1")
    .replace(/,? ([)\]])/g, "$1")
    .replace(/, }/g, " }")
    .replaceAll("|", "\\|");
}

/** With a backtick in it, code has two around it (CommonMark, code spans). */
function quoted(line: string): string {
  return line.includes("`") ? `\`\` ${line} \`\`` : `\`${line}\``;
}

if (process.argv[1] === fileURLToPath(import.meta.url)) {
  writeFileSync(DOCUMENT, withSdks(readFileSync(DOCUMENT, "utf8")));
}
