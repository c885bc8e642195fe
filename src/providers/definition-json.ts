import {
  type DescMessage,
  fromJson,
  fromJsonString,
  type JsonValue,
  type MessageShape,
  ScalarType,
} from "@bufbuild/protobuf";
import { didYouMean } from "../lib/similar.js";
import type { Report } from "./provider.js";

/**
 * Parses the ProtoJSON of a message. Reports unknown members, wrong types and duplicate members, each with its field;
 * undefined if there is any.
 */
export function parseDefinitionJson<Desc extends DescMessage>(
  schema: Desc,
  text: string,
  report: Report,
): MessageShape<Desc> | undefined {
  let json: JsonValue;
  try {
    json = JSON.parse(text) as JsonValue;
  } catch (error) {
    // The parser's message quotes the file, which may contain a secret by mistake.
    report("", `is not valid JSON${faultPlace(text, error as SyntaxError)}`);
    return undefined;
  }
  try {
    return fromJsonString(schema, text);
  } catch (error) {
    if (reportMembers(schema, json, "", report) === 0) reportWhole(error, report);
    return undefined;
  }
}

/** Where the parser stopped, counted from 1 as in editors; empty if its message does not say. */
function faultPlace(text: string, { message }: SyntaxError): string {
  if (message.startsWith("Unexpected end")) return ": it ends too early";
  const position = / at position (\d{1,9})/.exec(message)?.[1];
  if (position === undefined) return "";
  const lines = text.slice(0, Number(position)).split("\n");
  return ` (line ${lines.length}, column ${(lines.at(-1)?.length ?? 0) + 1})`;
}

/** protobuf-es stops at the first fault, so each member is parsed separately to find all of them. */
function reportMembers(schema: DescMessage, json: JsonValue, path: "" | `${string}.`, report: Report): number {
  if (json === null || typeof json !== "object" || Array.isArray(json)) {
    report(path.slice(0, -1), "must be a JSON object");
    return 1;
  }
  let count = 0;
  for (const [key, value] of Object.entries(json)) {
    const field = schema.fields.find((candidate) => candidate.jsonName === key || candidate.name === key);
    if (field === undefined) {
      const names = schema.fields.map(({ jsonName }) => jsonName);
      report(path + key, `unknown field${didYouMean(key, names)}`);
      count += 1;
    } else if (field.fieldKind === "message" && value !== null) {
      count += reportMembers(field.message, value, `${path}${key}.`, report);
    } else if (field.fieldKind === "list" && field.listKind === "message" && Array.isArray(value)) {
      for (const [at, element] of value.entries())
        count += reportMembers(field.message, element, `${path}${key}[${at}].`, report);
    } else if (!isReadable(schema, key, value)) {
      report(path + key, `must be ${expectation(field)}`);
      count += 1;
    }
  }
  return count;
}

function isReadable(schema: DescMessage, key: string, value: JsonValue): boolean {
  try {
    fromJson(schema, { [key]: value });
    return true;
  } catch {
    // The caller reports the problem; the library's message would quote the value.
    return false;
  }
}

function expectation(field: DescMessage["fields"][number]): string {
  if (field.fieldKind === "list") return field.listKind === "message" ? "a list of objects" : "a list of strings";
  if (field.fieldKind === "map") return "an object of strings";
  if (field.scalar === ScalarType.INT32) return "a whole number";
  return field.scalar === ScalarType.BOOL ? "true or false" : "a string";
}

/** Finds one of the known words; the first is the default. */
export function parseChoice<const Word extends string>(
  known: readonly [Word, ...Word[]],
  text: string,
  field: string,
  report: Report,
): Word {
  const word = text === "" ? known[0] : known.find((each) => each === text);
  if (word === undefined) report(field, `must be one of ${known.join(", ")}`);
  return word ?? known[0];
}

/** Reports faults that no single member has, such as a duplicate key. */
function reportWhole(error: unknown, report: Report): void {
  const key = error instanceof Error ? /duplicate object key "([^"]{1,64})"/.exec(error.message)?.[1] : undefined;
  if (key === undefined) report("", "does not fit the schema of a provider definition");
  else report(key, "appears twice");
}
