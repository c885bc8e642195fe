import type { JsonObject, JsonValue } from "@bufbuild/protobuf";
import type { CallDescription as CallDescriptionMessage } from "../../../gen/relay/v1/relay_pb.js";
import { type CallDescription, CALL_JSON_LIMITS as LIMITS } from "../../call/call.js";
import { formatError, type RelayError } from "../../model/errors.js";

/**
 * Reads the call from its message.
 *
 * Fails with CALL_FORMAT_ERROR that names the field, in the words of the JSON route.
 */
export function descriptionFromMessage(message: CallDescriptionMessage | undefined): CallDescription {
  return {
    url: required(message?.url, "url"),
    method: required(message?.method, "method"),
    payload: jsonText(message?.payload, "payload"),
    explodeArrays: message?.explodeArrays ?? false,
    headers: Object.entries(message?.headers ?? {}),
    queryString: isEmpty(message?.queryString) ? undefined : jsonText(message?.queryString, "queryString"),
    body: message?.body.length ? message.body : undefined,
  };
}

/** proto3 cannot tell an empty string from a missing one. */
function required(value: string | undefined, field: string): string {
  if (value === undefined || value === "") throw formatError(`${field} is missing.`);
  return value;
}

function isEmpty(struct: JsonObject | undefined): boolean {
  return struct !== undefined && Object.keys(struct).length === 0;
}

/** A Struct as JSON text. */
function jsonText(struct: JsonObject | undefined, field: string): Uint8Array | undefined {
  if (struct === undefined) return undefined;
  // Before it is written: of ten mebibytes of control characters sixty are.
  if (keysOf(struct, field, 1) > LIMITS.maxKeys) throw tooLarge(field);
  return Buffer.from(JSON.stringify(struct));
}

/** Members at any depth. Fails where a value is nested too deep, or is NaN or infinite, which a double may be. */
function keysOf(value: JsonValue, field: string, depth: number): number {
  if (typeof value === "number" && !Number.isFinite(value))
    throw formatError(`${field} has a number that JSON cannot hold (NaN or infinite).`);
  if (typeof value !== "object" || value === null) return 0;
  if (depth > LIMITS.maxDepth) throw tooLarge(field);
  const inner = Array.isArray(value) ? value : Object.values(value);
  let keys = Array.isArray(value) ? 0 : inner.length;
  for (const each of inner) keys += keysOf(each, field, depth + 1);
  return keys;
}

function tooLarge(field: string): RelayError {
  return formatError(`${field} has too many keys or is nested too deep.`);
}
