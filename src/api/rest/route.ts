import type { DescMethod } from "@bufbuild/protobuf";
import { getOption, hasOption } from "@bufbuild/protobuf";
import { http } from "../../../gen/google/api/annotations_pb.js";

/** A JSON route as the schema's google.api.http annotation describes it (AIP-127). */
export interface Route {
  /** Upper-case HTTP method. */
  readonly method: string;
  /**
   * Query parameter → field name: every top-level field that is neither in the path nor the body, by its proto name
   * and by its JSON name.
   */
  readonly queryFields: ReadonlyMap<string, string>;
  /** Raw (still percent-encoded) values of the path variables, undefined when the path is not this route's. */
  match(path: string): readonly string[] | undefined;
}

/** Reads the route of a method from its annotation; throws at start when the schema has none or one of another shape. */
export function routeFromMethod(method: DescMethod): Route {
  if (!hasOption(method, http)) throw new Error(`${method.name}: no google.api.http annotation`);
  const { pattern, body } = getOption(method, http);
  if (pattern.case !== "get" && pattern.case !== "post" && pattern.case !== "delete") {
    throw new Error(`${method.name}: only get, post and delete are supported`);
  }
  if ((body !== "") !== (pattern.case === "post")) throw new Error(`${method.name}: only a post has a body`);
  const template = pattern.value;
  const pathFields = [...template.matchAll(/\{(\w+)\}/g)].map((variable) => variable[1] as string);
  return {
    method: pattern.case.toUpperCase(),
    // With `*` the body is the message, and nothing of it stands in the query.
    queryFields: body === "*" ? new Map() : queryFieldsOf(method, [...pathFields, body]),
    match: matcherFor(template),
  };
}

function queryFieldsOf(method: DescMethod, taken: readonly string[]): ReadonlyMap<string, string> {
  const fields = method.input.fields.filter((field) => !taken.includes(field.name));
  return new Map(
    fields.flatMap((field) => [
      [field.name, field.name],
      [field.jsonName, field.name],
    ]),
  );
}

function matcherFor(template: string): Route["match"] {
  const [prefix = ""] = template.split(/\{\w+\}/);
  const escaped = template.replace(/[.*+?^$()|[\]\\]/g, "\\$&").replace(/\{\w+\}/g, "([^/]+)");
  const pattern = new RegExp(`^${escaped}$`);
  return (path) => (path.startsWith(prefix) ? pattern.exec(path)?.slice(1) : undefined);
}
