import { readFileSync } from "node:fs";
import { describe, expect, it } from "vitest";
import { SETTINGS } from "../src/config/setting-list.js";
import { REASONS } from "../src/model/errors.js";

const readme = readFileSync("README.md", "utf8");
const proto = readFileSync("proto/relay/v1/relay.proto", "utf8");
const ROWS = Object.fromEntries([
  ...Object.entries(REASONS).map(([reason, status]) => [reason, String(status)]),
  ["API_ERROR", "the provider's"],
]);

/** Rows of the table behind a marker in a document: cells without their back-ticks. */
function tableAfter(document: string, marker: string): string[][] {
  const text = readFileSync(document, "utf8");
  const table = text.slice(text.indexOf(`<!-- ${marker} -->`)).split("\n\n")[0] ?? "";
  const lines = table.split("\n").filter((line) => line.startsWith("|"));
  return lines.slice(2).map((line) =>
    line
      .slice(1, -1)
      .split(/(?<!\\)\|/)
      .map((cell) => cell.trim().replaceAll("`", "")),
  );
}

describe("the error table", () => {
  it("is the same in docs/calling.md, in the comments of the contract and in the code", () => {
    const inDocument = Object.fromEntries(
      tableAfter("docs/calling.md", "errors").map(([type, status]) => [type, status]),
    );
    const inProto = Object.fromEntries(
      [...proto.matchAll(/^ {2}\/\/ \| ([A-Z_]+) \| ([^|]+) \|/gm)].map(([, type, status]) => [type, status?.trim()]),
    );
    expect(inDocument).toEqual(ROWS);
    expect(inProto).toEqual(ROWS);
  });
});

describe("the settings table", () => {
  it("has every setting with its default and reason, in order", () => {
    expect(tableAfter("docs/configuration.md", "settings")).toEqual(
      SETTINGS.map(({ name, fallback, about }) => [name, fallback, about.replaceAll("`", "")]),
    );
  });
});

describe("the README", () => {
  it.each(["npm ci && npm run demo", "npm ci && npm test"])("names the command %s, and .ci/run runs it", (command) => {
    expect(readme).toContain(command);
    const ci = readFileSync(".ci/run", "utf8") + readFileSync("package.json", "utf8");
    for (const part of command.split(" && ")) expect(ci).toContain(part);
  });
});
