import type { AnyDesc, DescFile } from "@bufbuild/protobuf";
import { getComments } from "@bufbuild/protoplugin";

/** The comment of an element as CommonMark: paragraphs in one line each, tables as they are. */
export function descriptionOf(desc: Exclude<AnyDesc, DescFile>): string {
  const lines = (getComments(desc).leading ?? "").split("\n").map((line) => line.trim());
  return textFromLines(lines.filter((line) => !line.startsWith("buf:lint:ignore")));
}

/** The first sentence, as a title. */
export function summaryOf(description: string): string {
  return description.split(/(?<=[.;:]) /, 1)[0]?.replace(/[.;:]$/, "") ?? "";
}

function textFromLines(lines: readonly string[]): string {
  let text = "";
  let before = "";
  for (const line of lines) {
    const isOwn = line === "" || before === "" || line.startsWith("|");
    text += isOwn ? `\n${line}` : ` ${line}`;
    before = line;
  }
  return text.trim();
}
