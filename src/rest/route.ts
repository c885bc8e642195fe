import type { DescMethod } from "@bufbuild/protobuf";
import { getOption, hasOption } from "@bufbuild/protobuf";
import { http } from "../../gen/google/api/annotations_pb.js";

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
  const rule = getOption(method, http);
  if (rule.pattern.case !== "post" || rule.body === "" || rule.body === "*") {
    throw new Error(`${method.name}: only post with a body field is supported`);
  }
  const template = rule.pattern.value;
  const pathFields = [...template.matchAll(/\{(\w+)\}/g)].map((variable) => variable[1] as string);
  return {
    method: "POST",
    queryFields: queryFieldsOf(method, [...pathFields, rule.body]),
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
  const prefix = template.slice(0, template.indexOf("{"));
  const escaped = template.replace(/[.*+?^$()|[\]\\]/g, "\\$&").replace(/\{\w+\}/g, "([^/]+)");
  const pattern = new RegExp(`^${escaped}$`);
  return (path) => (path.startsWith(prefix) ? pattern.exec(path)?.slice(1) : undefined);
}
