import { type DescMessage, isFieldSet, type MessageShape } from "@bufbuild/protobuf";
import type { FieldMask } from "@bufbuild/protobuf/wkt";
import { invalidArgument } from "./invalid-argument.js";

/**
 * Names of the fields that an update writes (AIP-134): those that the mask has; all that can be written for `*`; without
 * a mask those that are not empty in the message.
 *
 * @param writable the fields that can be written, in the schema's spelling.
 */
export function maskedFields<Desc extends DescMessage, Field extends string>(
  schema: Desc,
  message: MessageShape<Desc>,
  mask: FieldMask | undefined,
  writable: readonly Field[],
): readonly Field[] {
  const paths = mask?.paths ?? [];
  if (paths.length === 1 && paths[0] === "*") return writable;
  const named = paths.length === 0 ? writable.filter((field) => isSet(schema, message, field)) : paths;
  const unknown = named.find((path) => !writable.some((field) => field === path));
  if (unknown !== undefined) throw invalidArgument("update_mask", `may only have ${writable.join(", ")}, or * alone`);
  if (named.length === 0) throw invalidArgument("update_mask", "names no field, and no field is set");
  return writable.filter((field) => named.some((path) => path === field));
}

function isSet<Desc extends DescMessage>(schema: Desc, message: MessageShape<Desc>, name: string): boolean {
  const field = schema.fields.find((each) => each.name === name);
  return field !== undefined && isFieldSet(message, field);
}
